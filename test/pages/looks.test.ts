import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Swagger UI has a scale of its own, which the rules in docs.css follow. */
const sheets = globSync('src/pages/**/*.css').filter((path) => !path.endsWith('docs.css'));

describe('the style of the pages', () => {
  it('takes all sizes of text and all distances from the scales of style.css', () => {
    const others = sheets.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/(?<![\w-])([a-z-]+):\s*([^;{}]+);/g)].flatMap(
        ([, property = '', value = '']) =>
          // The width of a border is no distance.
          /^(margin|padding|gap|row-gap|column-gap|font)/.test(property) &&
          /[\d.](rem|px)\b/.test(value.replace(/- ?1px/, ''))
            ? [`${path}: ${property}: ${value}`]
            : [],
      ),
    );

    expect(others).toEqual([]);
    expect(sheets.length).toBeGreaterThan(4);
  });

  it('uses every step of the scales, and no other', () => {
    const text = sheets.map((path) => readFileSync(path, 'utf8')).join('\n');
    const steps = (pattern: RegExp) => new Set([...text.matchAll(pattern)].map(([, name]) => name));

    expect(steps(/var\((--(?:space|text)-\w+)\)/g)).toEqual(steps(/(--(?:space|text)-\w+):/g));
  });
});
