import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import {
  lengthWithin,
  MAX_MATCH_STEPS,
  readPattern,
  startMatching,
  stepsFor,
} from '../../../src/domain/patterns/pattern.ts';
import { generatedPatterns, generatedTexts } from './given.ts';

const large = readPattern('(?:[ab]*a[ab]{200}|.*b[ab]{200})c');

describe('matching', () => {
  it('finds what re2js finds over the whole text', () => {
    const texts = generatedTexts(40);
    let matched = 0;

    const wrong = generatedPatterns(1_000).flatMap((source) => {
      const compiled = RE2JS.compile(source);
      const pattern = readPattern(source);
      const match = startMatching();
      const mistaken = texts.filter((text) => {
        const outcome = match(pattern, text);
        if (outcome === 'matches') matched += 1;
        return outcome !== (compiled.testExact(text) ? 'matches' : 'differs');
      });
      return mistaken.map((text) => ({ source, text }));
    });

    expect(wrong).toEqual([]);
    expect(matched).toBeGreaterThan(300);
  });

  it('finds in large programs what it finds in small ones', () => {
    expect(startMatching()(large, `${'b'.repeat(300)}c`)).toBe('matches');
    expect(startMatching()(large, 'b'.repeat(300))).toBe('differs');
  });

  it('ends where the steps of a check do, with the same outcome each time', () => {
    const text = 'b'.repeat(lengthWithin(large, MAX_MATCH_STEPS / 2));

    const outcomes = [1, 2].map(() => {
      const match = startMatching();
      return [match(large, text), match(large, text), match(large, text), match(readPattern('b'), 'b')];
    });

    expect(outcomes[0]).toEqual(['differs', 'differs', 'too_long', 'matches']);
    expect(outcomes[1]).toEqual(outcomes[0]);
  });

  it('takes no steps for a text that is longer than any match', () => {
    const match = startMatching();
    const pattern = readPattern('[0-9]{5}(-[0-9]{4})?');

    const outcomes = [match(pattern, '1'.repeat(MAX_MATCH_STEPS)), match(pattern, '12345-6789')];

    expect(outcomes).toEqual(['differs', 'matches']);
  });

  it.each(['[a-z]+', large.source, 'a{1,30}'])(
    'of %s fits into steps up to a length, and no further',
    (source) => {
      const pattern = readPattern(source);

      const wrong = [1, 7, 70, 71, 500, 10_000].filter((length) => {
        const steps = stepsFor(pattern, length);
        return lengthWithin(pattern, steps) !== length || lengthWithin(pattern, steps - 1) !== length - 1;
      });

      expect(wrong).toEqual([]);
    },
  );
});
