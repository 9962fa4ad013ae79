import { describe, expect, it } from 'vitest';
import { covering } from './covering.ts';

const dimensions = {
  theme: ['light', 'dark'],
  locale: ['en', 'de', 'fr', 'es', 'it', 'pt', 'pl', 'ar'],
  width: [320, 872, 1000],
  script: [true, false],
} as const;

describe('a covering set', () => {
  it('has each pair of values of two dimensions, in as few combinations as the two largest have pairs', () => {
    const combinations = covering(dimensions, false);

    const names = Object.keys(dimensions) as (keyof typeof dimensions)[];
    for (const [one, other] of names.flatMap((a) => names.map((b) => [a, b] as const))) {
      if (one === other) continue;
      for (const value of dimensions[one])
        for (const otherValue of dimensions[other])
          expect(combinations, `${one} ${value}, ${other} ${otherValue}`).toContainEqual(
            expect.objectContaining({ [one]: value, [other]: otherValue }),
          );
    }
    expect(combinations).toHaveLength(dimensions.locale.length * dimensions.width.length);
  });

  it('is the same each time, and has the values of each dimension about equally often', () => {
    const combinations = covering(dimensions, false);

    expect(covering(dimensions, false)).toEqual(combinations);
    expect(combinations.filter(({ script }) => script).length).toBeGreaterThan(combinations.length / 3);
    expect(combinations.filter(({ script }) => !script).length).toBeGreaterThan(combinations.length / 3);
  });

  it('is all combinations if it is to be full, of two dimensions, and of one', () => {
    const full = covering(dimensions, true);

    expect(full).toHaveLength(2 * 8 * 3 * 2);
    expect(new Set(full.map((combination) => JSON.stringify(combination))).size).toBe(full.length);
    expect(covering({ role: ['owner', 'key'], engine: ['pglite', 'postgres'] }, false)).toHaveLength(4);
    expect(covering({ engine: ['pglite', 'postgres'] }, false)).toEqual([
      { engine: 'pglite' },
      { engine: 'postgres' },
    ]);
  });

  it('has no combination where a dimension has no value', () => {
    expect(covering({ role: ['owner', 'key'], engine: [] }, false)).toEqual([]);
  });
});
