import { describe, expect, it } from 'vitest';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import { refusals, sent, withKey } from '../given.ts';

/** Its states are as many as the subsets of 200 positions. */
const hostile = '(?:[ab]*a[ab]{200}|.*b[ab]{200})c';
const name = "(?:[\\p{L}' -]{1,100}\\s*){1,5}";

describe('the patterns of a form', () => {
  it.each([
    ['a hundred everyday ones', fieldsOf(100, { pattern: '[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}' })],
    ['names in any script', fieldsOf(5, { pattern: name })],
    ['names in any script with a length', fieldsOf(100, { pattern: name, maxLength: 500 })],
    ['a long slug', fieldsOf(1, { pattern: '[a-z0-9-]{1,200}', maxLength: 100_000 })],
    ['any case in any script', fieldsOf(100, { pattern: '(?i)[a-zà-ÿ]+', maxLength: 200 })],
    ['a hostile one that fits', fieldsOf(1, { pattern: hostile })],
    ['a short default', fieldsOf(100, { pattern: '[a-z]{1,50}', defaultValue: 'a' })],
  ])('may be %s', (_, fields) => {
    expect(refusals(sent({ fields }))).toEqual([]);
  });

  it('are refused one by one, the most expensive first, until the rest can be matched in time', () => {
    const fields = [
      ...fieldsOf(2, { pattern: '[a-z]{1,1000}', maxLength: 20 }),
      ...fieldsOf(40, { pattern: hostile }),
    ];

    const refused = refusals(sent({ fields: fields.map((field, index) => ({ ...field, id: `f${index}` })) }));

    expect(refused.length).toBeGreaterThan(20);
    expect(refused.length).toBeLessThan(40);
    expect(refused).not.toContain('fields.0.pattern invalid_string');
    expect(refused).not.toContain('fields.1.pattern invalid_string');
  });

  it('say what they cost and what would lower it', () => {
    const fields = fieldsOf(1, { pattern: '[ab]{1000}a[ab]{1000}', maxLength: 50_000 });

    const result = checkDefinition(sent({ fields }), withKey);

    expect(result).toMatchObject({
      ok: false,
      violations: [
        {
          path: 'fields.0.pattern',
          message:
            'Takes up to 100,250,000 steps to match (2,005 instructions over 50,000 characters), and the patterns of a ' +
            'form may take 60,000,000 together: lower maxLength, or use smaller repeat counts',
        },
      ],
    });
  });

  it('may take more on forms made without a key, whose submissions are smaller', () => {
    const fields = fieldsOf(40, { pattern: '[a-z]{1,400}' });

    expect(refusals(sent({ fields }), { keyless: true })).toEqual([]);
    expect(refusals(sent({ fields }))).not.toEqual([]);
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

  it('are not matched against defaults that would take long', () => {
    const fields = fieldsOf(100, { pattern: '[ab]*a[ab]{60}', defaultValue: 'ab'.repeat(1_000) });

    expect(refusals(sent({ fields })).at(-1)).toBe('fields.99.defaultValue custom');
  });
});

function fieldsOf(count: number, attributes: object): object[] {
  return Array.from({ length: count }, (_, index) => ({ id: `f${index}`, type: 'text', ...attributes }));
}
