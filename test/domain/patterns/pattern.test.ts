import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { readPattern } from '../../../src/domain/patterns/pattern.ts';
import { generatedPatterns, generatedTexts } from './given.ts';

describe('the size of a pattern', () => {
  it.each([
    '[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\\.[a-zA-Z]{2,}',
    '\\d{5}(-\\d{4})?',
    '[a-z0-9-]{1,200}',
    '[A-Z]{2}\\d{2}[A-Z0-9]{11,30}',
    "(?:[\\p{L}' -]{1,100}\\s*){1,5}",
    '(?:[ab]*a[ab]{200}|.*b[ab]{200})c',
    '[[:alpha:])]{20}',
    '[]a]{20}|[^]a]{20}',
    '(?:[ab]{100})(?s){10}',
    '(?:[ab]{30}(?i){3})(?s)+(?-s){10}',
    '(?P<year>\\x{41}{20})(?i:\\pL{20})',
  ])('of %s is that of its program, or a little more', (source) => {
    const compiled = RE2JS.compile(source).programSize();

    const { size } = readPattern(source);

    expect(size).toBeGreaterThanOrEqual(compiled);
    expect(size).toBeLessThanOrEqual(compiled * 1.05 + 12);
  });

  it('is never below that of its program', () => {
    const patterns = generatedPatterns(5_000);

    const tooSmall = patterns.filter(
      (source) => readPattern(source).size < RE2JS.compile(source).programSize(),
    );

    expect(tooSmall).toEqual([]);
  });

  it.each([
    ['[0-9]{5}(-[0-9]{4})?', 10],
    ['(a|bcd|){2,3}', 9],
    ['^a$|\\Qab\\E', 3],
    ['a{3,}', Infinity],
    ['ab(?s){2,5}', 6],
    ['^*a', Infinity],
  ])('of %s tells the longest text that matches', (source, longest) => {
    expect(readPattern(source).longest).toBe(longest);
  });

  it('never tells a shorter one than a text that matches', () => {
    const texts = generatedTexts(200);

    const wrong = generatedPatterns(2_000).filter((source) => {
      const compiled = RE2JS.compile(source);
      const { longest } = readPattern(source);
      return texts.some((text) => [...text].length > longest && compiled.testExact(text));
    });

    expect(wrong).toEqual([]);
  });

  it.each(['(', ')', '[', '[[:', '\\', '\\p', '\\p{', '\\x{', 'a{', 'a{1,', '*', '(?', '(?P<', '\\Q', '|'])(
    'can be read of %s, which is no pattern',
    (source) => {
      expect(readPattern(source).size).toBeGreaterThan(0);
    },
  );

  it('can be read of any nesting', () => {
    expect(readPattern('('.repeat(256)).size).toBeGreaterThan(256);
    expect(readPattern(`${'('.repeat(28)}a${'{1000})'.repeat(28)}`).size).toBeGreaterThan(1e80);
  });
});
