import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSource } from '../scripts/parse-sources.ts';
import {
  expressionsIn,
  expressionsInSources,
  judge,
  keptVerdicts,
  nameOf,
} from './support/regular-expressions.ts';

const root = join(import.meta.dirname, '..');

describe('the regular expressions of src', () => {
  const found = expressionsInSources();
  const kept = keptVerdicts();
  const byName = new Map(found.known.map((each) => [nameOf(each), each]));

  it('have verdicts, which are kept in regular-expressions.json', async () => {
    const isKept = new Set([...kept.safe, ...Object.keys(kept.bounded)]);
    const missing = [...byName.values()].filter((each) => !isKept.has(nameOf(each)));

    expect(byName.size).toBeGreaterThan(200);
    // Judged here to say what is to be done: a safe one is added to `safe`, any other is changed.
    expect(
      await Promise.all(missing.map(async (each) => [each.path, nameOf(each), await judge(each)])),
    ).toEqual([]);
    expect([...isKept].filter((name) => !byName.has(name))).toEqual([]);
  });

  it('that are not safe have texts with a bound, which is named', () => {
    const paths = globSync('src/**/*.ts', { cwd: root });
    const words = [...paths, ...paths.map((path) => readFileSync(join(root, path), 'utf8'))];
    const named = Object.entries(kept.bounded).map(([name, { bound }]) => ({
      name,
      constants: [...bound.matchAll(/`([^`]+)`/g)].map(([, constant = '']) => constant),
    }));

    expect(Object.values(kept.bounded).filter(({ verdict }) => verdict === 'safe')).toEqual([]);
    expect(named.filter(({ constants }) => constants.length === 0)).toEqual([]);
    const gone = named.flatMap(({ constants }) =>
      constants.filter((constant) => !words.some((each) => each.includes(constant))),
    );
    expect(gone).toEqual([]);
  });

  it('that the code puts together are listed with their parts', () => {
    expect(Object.keys(kept.assembled).toSorted()).toEqual(found.assembled.toSorted());
    expect(Object.values(kept.assembled).filter((parts) => parts.length < 20)).toEqual([]);
  });

  it('would be found in every way that there is to make one', () => {
    const source = [
      'const word = String.raw`\\w`;',
      "const shapes = { one: 'a' + word };",
      'const sign = /[+-]/;',
      "export const found = [/a+$/g, new RegExp(shapes.one, 'u'), RegExp('^' + sign.source), 'a'.match('b+')];",
      'const other = (text: string): RegExp => new RegExp(text) instanceof RegExp ? new RegExp(text + sign) : sign;',
      'const Alias = RegExp;',
    ].join('\n');

    const { known, assembled } = expressionsIn(parseSource('src/a.ts', source));

    expect(known.map(nameOf)).toEqual(['/[+-]/', '/a+$/g', '/a\\w/u', '/^[+-]/', '/b+/']);
    expect(assembled).toEqual([
      'src/a.ts: new RegExp(text)',
      'src/a.ts: new RegExp(text + sign)',
      'src/a.ts: Alias = RegExp',
    ]);
  });

  it.each([
    ['^\\d+(?:\\.\\d*)?$', '', 'safe'],
    ['^\\d+\\.?\\d*$', '', 'polynomial'],
    ['[\\s.]+$', '', 'polynomial'],
    ['^(?:a+)+$', '', 'exponential'],
    // What recheck does not know is no reason to pass.
    ['[\\p{L}--[a-z]]', 'v', 'unknown: invalid'],
  ])('would be judged: /%s/%s is %s', async (pattern, flags, verdict) => {
    expect(await judge({ pattern, flags })).toBe(verdict);
  });
});
