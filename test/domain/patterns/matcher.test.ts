import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { costOf, createMatcher, matchOnce } from '../../../src/domain/patterns/matcher.ts';
import { readPattern } from '../../../src/domain/patterns/pattern.ts';
import { generatedPatterns, generatedTexts } from './given.ts';

describe('matching', () => {
  it('finds what re2js finds over the whole text', () => {
    const texts = generatedTexts(40);
    const matcher = createMatcher(1_000_000);
    let matched = 0;

    const wrong = generatedPatterns(1_000).flatMap((source) => {
      const compiled = RE2JS.compile(source);
      const pattern = readPattern(source);
      const mistaken = texts.filter((text) => {
        const matches = matcher.matches(pattern, text);
        if (matches) matched += 1;
        return matches !== compiled.testExact(text);
      });
      return mistaken.map((text) => ({ source, text }));
    });

    expect(wrong).toEqual([]);
    expect(matched).toBeGreaterThan(300);
  });

  it('finds in large programs what it finds in small ones', () => {
    const large = readPattern('(?:[ab]*a[ab]{200}|.*b[ab]{200})c');

    expect(matchOnce(large, `${'b'.repeat(300)}c`)).toBe(true);
    expect(matchOnce(large, 'b'.repeat(300))).toBe(false);
  });

  it('counts compiling a pattern once, and again when there was no room to keep it', () => {
    const [one, other] = [readPattern('[a-z]{1,100}'), readPattern('[0-9]{1,100}')];
    const matcher = createMatcher(200_000);

    expect(matcher.costOf(one, 'x')).toBe(one.setup + costOf(one, 'x'));
    matcher.matches(one, 'x');
    expect(matcher.costOf(one, 'x')).toBe(costOf(one, 'x'));
    matcher.matches(other, 'x');
    expect(matcher.costOf(other, 'x')).toBe(costOf(other, 'x'));
    expect(matcher.costOf(one, 'x')).toBe(one.setup + costOf(one, 'x'));
  });
});
