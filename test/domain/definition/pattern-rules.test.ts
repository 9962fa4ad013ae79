import { describe, expect, it } from 'vitest';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import { refusals, sent, withKey } from '../given.ts';

/** Its states are as many as the subsets of 200 positions. */
const hostile = '(?:[ab]*a[ab]{200}|.*b[ab]{200})c';
const name = "(?:[\\p{L}' -]{1,100}\\s*){1,5}";

describe('the patterns of a form', () => {
  it.each([
    ['a hundred everyday ones', fieldsOf(100, { pattern: '[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}' })],
    ['names in any script', fieldsOf(5, { pattern: "[\\p{L}' -]+" })],
    ['names in any script with a length', fieldsOf(5, { pattern: name, maxLength: 150 })],
    ['a long slug', fieldsOf(1, { pattern: '[a-z0-9-]{1,200}', maxLength: 100_000 })],
    ['any case in any script', fieldsOf(100, { pattern: '(?i)[a-zà-ÿ]+', maxLength: 200 })],
    ['a hostile one that fits', fieldsOf(1, { pattern: hostile, maxLength: 2_000 })],
    ['a short default', fieldsOf(100, { pattern: '[a-z]{1,50}', defaultValue: 'a' })],
  ])('may be %s', (_, fields) => {
    expect(refusals(sent({ fields }))).toEqual([]);
  });

  it('are refused one by one, the most expensive first, until the rest can be matched in time', () => {
    const fields = [
      ...fieldsOf(2, { pattern: '[a-z]{1,200}', maxLength: 20 }),
      ...fieldsOf(40, { pattern: hostile, maxLength: 300 }),
    ];

    const refused = refusals(sent({ fields: fields.map((field, index) => ({ ...field, id: `f${index}` })) }));

    expect(refused.length).toBeGreaterThan(20);
    expect(refused.length).toBeLessThan(40);
    expect(refused).not.toContain('fields.0.pattern invalid_string');
    expect(refused).not.toContain('fields.1.pattern invalid_string');
  });

  it('say what they cost and the largest maxLength that fits', () => {
    const pattern = '[ab]{100}a[ab]*';
    const withLength = (maxLength: number) => sent({ fields: fieldsOf(1, { pattern, maxLength }) });

    const result = checkDefinition(withLength(50_000), withKey);

    expect(result).toMatchObject({
      ok: false,
      violations: [
        {
          path: 'fields.0.pattern',
          message:
            'Takes up to 5,404,320 steps to match (108 instructions over 50,000 characters), and the patterns of a ' +
            'form may take 1,000,000 together: set maxLength to at most 9,219, or use smaller repeat counts',
        },
      ],
    });
    expect(refusals(withLength(9_219))).toEqual([]);
    expect(refusals(withLength(9_220))).not.toEqual([]);
  });

  it.each([
    ['240,000 instructions', `(?:${'a'.repeat(240)}){1000}`],
    ['27,000 classes of letters', '\\pL{1000}'.repeat(27)],
    ['ranges in any case', `(?i)[${'Ā-ﻼ'.repeat(80)}]`],
    ['counts in counts', '((((((a{1,100}){1,100}){1,100}){1,100}){1,100}){1,100}'],
  ])('are not compiled if there are %s', (_, pattern) => {
    const fields = Array.from({ length: 100 }, (__, index) => ({
      id: `f${index}`,
      type: 'text',
      pattern: `${pattern.slice(0, 250)}${index}`,
    }));

    const before = process.threadCpuUsage();
    const refused = refusals(sent({ fields }));

    expect(process.threadCpuUsage(before).user).toBeLessThan(1_000_000);
    expect(refused.length).toBeGreaterThan(90);
    expect(new Set(refused.map((each) => each.replace(/\d+/, 'N')))).toEqual(
      new Set(['fields.N.pattern invalid_string']),
    );
  });
});

function fieldsOf(count: number, attributes: object): object[] {
  return Array.from({ length: count }, (_, index) => ({ id: `f${index}`, type: 'text', ...attributes }));
}
