import { describe, expect, it } from 'vitest';
import {
  type Comparison,
  type ConditionOp,
  conditionOps,
  evaluate,
  instantOfText,
  isEmpty,
} from '../../../src/domain/conditions/condition.ts';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import { normalizeField } from '../../../src/domain/definition/field-rules.ts';
import { fieldSchema } from '../../../src/domain/fields/field.ts';
import { fieldRules } from '../../../src/domain/fields/index.ts';
import type { Json } from '../../../src/domain/json/json.ts';
import { startMatching } from '../../../src/domain/patterns/pattern.ts';

const options = ['a', 'b', '10:00'].map((value) => ({ label: value.toUpperCase(), value }));

const fields = [
  { type: 'text' },
  { type: 'text', minLength: 2, maxLength: 5 },
  { type: 'textarea' },
  { type: 'email' },
  { type: 'url' },
  { type: 'phone' },
  { type: 'number' },
  { type: 'number', min: 1, max: 5, step: 0.5 },
  { type: 'boolean' },
  { type: 'checkbox' },
  { type: 'checkbox', required: true },
  { type: 'date' },
  { type: 'date', min: '2026-12-31', max: '2030-01-01' },
  { type: 'time' },
  { type: 'time', min: '10:00', max: '10:00:00' },
  { type: 'datetime' },
  { type: 'select', options },
  { type: 'radio', options },
  { type: 'radio', options, allowOther: true },
  { type: 'multi_select', options },
  { type: 'multi_select', options, allowOther: true },
  { type: 'hidden' },
  { type: 'file' },
  { type: 'file', maxFiles: 3 },
  { type: 'rating' },
  { type: 'scale', min: 0, max: 10 },
  { type: 'statement' },
  { type: 'ranking', options },
  { type: 'matrix', options, rows: options.slice(0, 2) },
  { type: 'address' },
  { type: 'signature' },
].map((attributes) => ({ id: 'asked', ...attributes }));

const values = [
  [null, true, false],
  ['true', 'No', '5', ' ', 'a', 'A', 'x', 'c'.repeat(300), '', 'abc', 'abcdef'],
  [-1, 0, 1, 2.5, 2.3, 5, 9, 10, 11, 1e17, 2 ** 60],
  ['31.12.2026', '2026', '2026-12-31', '2027-01-01', '2030-01-01', '2030-01-02', '2026-02-30'],
  ['10:00', '10:00:00', '25:00', '2030-01-01T00:00:00Z', '2030-01-01T01:00:00+01:00', '2030-01-01T00:00'],
  ['a@b.example', 'a@bücher.example', 'a@xn--bcher-kva.example', 'https://a.example/', 'a.example'],
  ['+1 555 0100', '+1 555 0100 ext. 2', '+1 555 0100;ext=2'],
].flat();

/** Answers that are no scalars. */
const lists: Json[] = [
  ['a'],
  ['b', 'a'],
  ['b', 'a', '10:00'],
  ['x', 'a'],
  { a: 'b' },
  { text: 'Ada' },
  { line1: '1 Road', city: 'Town', country: 'US' },
  { upload_id: 'upl_00000000000000000000000000' },
  [{ upload_id: 'upl_00000000000000000000000000' }],
];

const scalars = [
  [-5, 1.5, 3, 4, 7, 1e16, 3e20, -1e20, 1e22],
  ['\t!', '!!'],
  ['aa', 'zz', 'zzzzz', '0', '\u{10ffff}aa', '0001-01-01', '9999-12-31', '00:00', '23:59:59'],
  ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '!@0.aa', 'zz@zz.zz', 'http://a', 'HTTP://a', '000'],
].flat();

const further: Json[] = [...lists, ...scalars];

describe('what a condition compares an answer with', () => {
  it.each(fields)('is refused if no answer, or every one, is so: %j', (field) => {
    const answers = answersOf(field);
    const wrong: string[] = [];
    for (const comparison of comparisons()) {
      const outcomes = new Set(answers.map((answer) => evaluate(comparison, answer)));
      // What is no date is in an order with dates, but in none that anybody means.
      if (isOrder(comparison) && dateTypes.includes(field.type) && !isAnswer(field, comparison.value)) {
        outcomes.clear();
        outcomes.add(false);
      }
      const problems = problemsOf(field, comparison);
      const isDecided = outcomes.size === 1;
      if (problems.length > 0 && !isDecided) wrong.push(`refused: ${JSON.stringify(comparison)}`);
      if (problems.length === 0 && isDecided && isJudged(field.type, comparison)) {
        wrong.push(`accepted: ${JSON.stringify(comparison)}`);
      }
    }

    expect(wrong).toEqual([]);
  });

  it.each([
    [{ type: 'checkbox' }, 'eq', 'true', 'Expected boolean, received string'],
    [{ type: 'boolean' }, 'eq', 'No', 'Expected boolean, received string'],
    [{ type: 'boolean' }, 'gt', true, 'gives true or false'],
    [{ type: 'number' }, 'gt', '5', 'gives a number'],
    [{ type: 'rating' }, 'eq', 9, 'Must be at most 5'],
    [{ type: 'rating' }, 'gt', 5, 'gives at most 5'],
    [{ type: 'date' }, 'eq', '31.12.2026', 'YYYY-MM-DD'],
    [{ type: 'date' }, 'lt', '31.12.2026', 'YYYY-MM-DD'],
    [{ type: 'multi_select', options }, 'gt', 1, 'gives a list of options'],
    [{ type: 'multi_select', options }, 'eq', 'a', 'gives a list of options'],
    [{ type: 'file' }, 'eq', 'cv.pdf', 'gives files'],
    [{ type: 'address' }, 'contains', 'US', 'gives several parts'],
    [{ type: 'email' }, 'eq', 'a@bücher.example', 'a@xn--bcher-kva.example'],
    [{ type: 'text' }, 'contains', 5, 'gives a text'],
    [{ type: 'statement' }, 'notEmpty', undefined, 'A statement has no answer'],
  ] as const)('is told what %j gives, for %s %j', (field, op, value, told) => {
    const [problem, ...others] = problemsOf(
      { id: 'asked', ...field },
      {
        field: 'asked',
        op,
        ...(value !== undefined && { value }),
      },
    );

    expect(problem?.path).toBe(`fields.1.visibleWhen.${value === undefined ? 'field' : 'value'}`);
    expect(problem?.message).toContain(told);
    expect(others).toEqual([]);
  });

  it('is refused item by item, and with no item at all', () => {
    const pathsOf = (op: ConditionOp, value: (string | number)[]) =>
      problemsOf({ id: 'asked', type: 'number' }, { field: 'asked', op, value }).map(({ path }) => path);

    expect(pathsOf('in', [1, '2', 3, 'x'])).toEqual(
      [1, 3].map((index) => `fields.1.visibleWhen.value.${index}`),
    );
    expect(pathsOf('nin', [])).toEqual(['fields.1.visibleWhen.value']);
  });

  it('is not judged for a field whose answers are not known, and by no pattern', () => {
    const comparison: Comparison = { field: 'asked', op: 'eq', value: 7 };
    const text: Comparison = { field: 'asked', op: 'eq', value: 'x' };

    expect(problemsOf({ id: 'asked', type: 'rating', max: '7' }, comparison).map(({ path }) => path)).toEqual(
      ['fields.0.max'],
    );
    expect(problemsOf({ id: 'asked', type: 'text', pattern: '[0-9]+' }, text)).toEqual([]);
  });
});

/** Texts are not searched for a part that they can have by their form, and those of choices not compared by it. */
function isJudged(type: string, { op, value }: Comparison): boolean {
  if (op === 'contains') return typeof value !== 'string' || value === '';
  if (['text', 'textarea'].includes(type) && !Number.isNaN(instantOfText(String(value)))) return false;
  const hasOwnForm = ['select', 'radio', 'email', 'url', 'phone'].includes(type);
  return !isOrder({ field: '', op }) || !hasOwnForm || typeof value !== 'string';
}

function isOrder({ op }: Comparison): boolean {
  return ['lt', 'lte', 'gt', 'gte'].includes(op);
}

const dateTypes = ['date', 'time', 'datetime'];

function isAnswer(input: { type: string }, value: unknown): boolean {
  return problemsOf({ id: 'asked', type: input.type, defaultValue: value }).length === 0 && !isEmpty(value);
}

function comparisons(): Comparison[] {
  return conditionOps.flatMap((op): Comparison[] => {
    if (op === 'empty' || op === 'notEmpty') return [{ field: 'asked', op }];
    const isList = op === 'in' || op === 'nin';
    return values.map((value) => ({ field: 'asked', op, value: isList ? [value] : value }));
  });
}

/** Sets of answers with each that the field takes, and the one without. */
function answersOf(input: object): Record<string, unknown>[] {
  const field = normalizeField(fieldSchema.parse(input), { keyless: false });
  const { check, fold = String } = fieldRules[field.type];
  const judge = check(field);
  const listed = values.map((value) => [String(value)]);
  const taken = [...values, ...listed, ...further]
    .filter((answer) => !isEmpty(answer))
    .map((answer) => (typeof answer === 'string' ? fold(answer) : answer))
    .filter((answer) => judge(answer, '', startMatching()).length === 0);
  return [{}, ...taken.map((answer) => ({ asked: answer }))];
}

function problemsOf(field: object, visibleWhen?: Comparison) {
  const asked = { id: 'next', type: 'text', ...(visibleWhen && { visibleWhen }) };
  const definition = { name: 'n', slug: 's', fields: [field, asked], delivery: { type: 'email' } };
  const checked = checkDefinition(definition, { keyless: false, allowPrivateUrls: false });
  return checked.ok ? [] : checked.violations;
}
