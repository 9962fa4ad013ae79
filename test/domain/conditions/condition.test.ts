import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Comparison, evaluate } from '../../../src/domain/conditions/condition.ts';

describe('evaluate', () => {
  it.each<[string, unknown, Comparison['op'], Comparison['value'], boolean]>([
    ['equal texts', 'a', 'eq', 'a', true],
    ['other texts', 'a', 'eq', 'A', false],
    ['a number and its text', 1, 'eq', '1', false],
    ['equal numbers', 1.5, 'eq', 1.5, true],
    ['true', true, 'eq', true, true],
    ['no answer and a text', undefined, 'eq', 'a', false],
    ['no answer and null', undefined, 'eq', null, true],
    ['a box that was not ticked', undefined, 'eq', false, true],
    ['an empty text and null', '', 'eq', null, true],
    ['a list and its only choice', ['a'], 'eq', 'a', false],
    ['the same time in two spellings', '10:00', 'eq', '10:00:00', true],
    ['the same instant in two zones', '2030-01-01T01:00:00+01:00', 'eq', '2030-01-01T00:00Z', true],
    ['different texts', 'a', 'ne', 'b', true],
    ['no answer and another text', undefined, 'ne', 'b', true],
    ['no answer and true', undefined, 'ne', true, true],
    ['no answer and false', undefined, 'ne', false, false],
    ['a text in a list', 'a', 'in', ['a', 'b'], true],
    ['a text in another list', 'c', 'in', ['a', 'b'], false],
    ['a choice among many', ['c', 'b'], 'in', ['a', 'b'], true],
    ['no answer in a list', undefined, 'in', ['a'], false],
    ['no answer in a list with null', undefined, 'in', ['a', null], true],
    ['a text not in a list', 'c', 'nin', ['a', 'b'], true],
    ['no answer not in a list', undefined, 'nin', ['a'], true],
    ['choices none of which is named', ['c'], 'nin', ['a'], true],
    ['a lower number', 2, 'lt', 10, true],
    ['an equal number', 2, 'lt', 2, false],
    ['at most', 2, 'lte', 2, true],
    ['a number and a text', 2, 'lt', '10', false],
    ['a number and a text, the other way', 2, 'gt', '10', false],
    ['no answer is not below', undefined, 'lt', 1, false],
    ['no answer is not above', undefined, 'gte', 0, false],
    ['true is in no order', true, 'gte', true, false],
    ['a later date', '2030-02-01', 'gt', '2030-01-31', true],
    ['an earlier time', '09:59', 'lt', '10:00:00', true],
    ['the same time is at least', '10:00', 'gte', '10:00:00', true],
    ['a later instant that reads earlier', '2030-01-01T00:30:00Z', 'gt', '2030-01-01T01:00:00+01:00', true],
    ['texts', 'b', 'gte', 'a', true],
    ['a part of a text', 'headless', 'contains', 'head', true],
    ['a part in another case', 'headless', 'contains', 'Head', false],
    ['nothing in a text', 'headless', 'contains', '', false],
    ['a choice in a list', ['a', 'b'], 'contains', 'b', true],
    ['a part of a choice', ['ab'], 'contains', 'a', false],
    ['a digit in a number', 12, 'contains', 1, false],
    ['no answer contains nothing', undefined, 'contains', 'a', false],
    ['absent', undefined, 'empty', undefined, true],
    ['null', null, 'empty', undefined, true],
    ['an empty text', '', 'empty', undefined, true],
    ['an empty list', [], 'empty', undefined, true],
    ['false', false, 'empty', undefined, false],
    ['zero', 0, 'notEmpty', undefined, true],
    ['an empty list, the other way', [], 'notEmpty', undefined, false],
  ])('%s: %j %s %j', (_, answer, op, value, holds) => {
    const condition = { field: 'a', op, ...(value !== undefined && { value }) };

    expect(evaluate(condition, answer === undefined ? {} : { a: answer })).toBe(holds);
  });

  it('joins conditions', () => {
    const yes = { field: 'a', op: 'empty' } as const;
    const no = { field: 'a', op: 'notEmpty' } as const;

    expect(evaluate({ all: [yes, yes] }, {})).toBe(true);
    expect(evaluate({ all: [yes, no] }, {})).toBe(false);
    expect(evaluate({ any: [no, yes] }, {})).toBe(true);
    expect(evaluate({ any: [no, no] }, {})).toBe(false);
    expect(evaluate({ not: no }, {})).toBe(true);
    expect(evaluate({ not: { all: [yes, { any: [no] }] } }, {})).toBe(true);
  });

  it('finds a text in a long one wherever it is', () => {
    const texts = ['ab', 'aab', 'aabaaab', 'aaaa'].map((repeated) => repeated.repeat(200));
    const parts = texts.flatMap((text) => [text.slice(0, 150), text.slice(1, 101), `b${text.slice(0, 99)}`]);
    const pairs = texts.flatMap((text) =>
      parts.flatMap((part) => [
        [text, part],
        [`${text}c`, `${part}c`],
        [`${text}${part}c`, `${part}c`],
      ]),
    );

    const wrong = pairs.filter(([a = '', value = '']) => {
      const found = evaluate({ field: 'a', op: 'contains', value }, { a });
      return found !== a.includes(value);
    });

    expect(wrong).toEqual([]);
    expect(new Set(pairs.map(([text = '', part = '']) => text.includes(part)))).toEqual(
      new Set([true, false]),
    );
  });

  it('takes nothing that answers inherit for an answer', () => {
    expect(evaluate({ field: 'constructor', op: 'empty' }, {})).toBe(true);
    expect(evaluate({ field: 'toString', op: 'eq', value: null }, {})).toBe(true);
  });

  it('runs in a browser: imports nothing but types, and a file that imports nothing', () => {
    const [own, imported] = ['conditions/condition.ts', 'text/typed-signs.ts'].map((path) =>
      readFileSync(new URL(`../../../src/domain/${path}`, import.meta.url), 'utf8'),
    );

    expect(own?.match(/^import (?!type ).*$/gm)).toEqual(["import { inNfc } from '../text/typed-signs.ts';"]);
    expect(imported).not.toMatch(/^import /m);
  });
});
