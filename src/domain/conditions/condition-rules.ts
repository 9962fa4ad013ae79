import { z } from 'zod';
import { custom, type Violation } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import { formLimits } from '../limits/limits.ts';
import { type Condition, type ConditionOp, conditionOps } from './condition.ts';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const MAX_NODES = 100;

const comparison = z
  .strictObject({
    field: z.string().min(1).max(formLimits.fieldId).describe('The id of an earlier field.'),
    op: z.enum(conditionOps).describe('How to compare.'),
    value: optional(
      z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(scalar).max(formLimits.options)]),
      'What to compare with, as the field gives it; a list for `in` and `nin`, absent for `empty` and `notEmpty`.',
    ),
  })
  .describe('Compares the answer of one earlier field.');

const condition = z.lazy(() => conditionSchema);

/** The shape of a condition; how deep, how many and which fields is for the definition's rules. */
export const conditionSchema: z.ZodType<Condition> = z
  .union(
    [
      comparison,
      z.strictObject({ all: z.array(condition).min(1).max(MAX_NODES) }),
      z.strictObject({ any: z.array(condition).min(1).max(MAX_NODES) }),
      z.strictObject({ not: condition }),
    ],
    { error: 'Expected {field, op, value}, {all: […]}, {any: […]} or {not: …}' },
  )
  .meta({ id: 'Condition', description: 'A condition on the answers to earlier fields.' });

/**
 * What is wrong with a field's condition beyond its shape: its size, the fields it names, operators without
 * their value, and values that their field never gives.
 *
 * Judges the condition as it was sent; parts of the wrong shape are left to the schema. `earlier`
 * holds the fields before this one by their ids. Nests no deeper than the JSON that came in.
 */
export function conditionProblems(input: unknown, earlier: EarlierFields, path: string): Violation[] {
  const problems: Violation[] = [];
  const nodes = walk(input, path, 1);
  if (nodes.length > MAX_NODES) {
    return [{ path, code: 'too_big', message: `A condition has at most ${MAX_NODES} parts` }];
  }
  for (const node of nodes) {
    if (node.depth === MAX_DEPTH + 1) {
      problems.push({
        path: node.path,
        code: 'too_big',
        message: `A condition is at most ${MAX_DEPTH} deep`,
      });
    }
    problems.push(...comparisonProblems(node.input, earlier, node.path));
  }
  return problems;
}

/** How many comparisons of a condition, as it was sent, may look through a whole answer. */
export function countSearches(input: unknown): number {
  return walk(input, '', 1).filter((node) => node.input.op === 'contains').length;
}

function comparisonProblems(
  { field, op, value }: Record<string, unknown>,
  earlier: EarlierFields,
  path: string,
): Violation[] {
  const problems: Violation[] = [];
  if (typeof field === 'string' && !earlier.has(field)) {
    problems.push(custom(`${path}.field`, 'A condition may name earlier fields only'));
  }
  const known = conditionOps.find((each) => each === op);
  if (known === undefined) return problems;
  const fault = valueFault(known, value);
  if (fault !== undefined) return [...problems, { path: `${path}.value`, ...fault }];
  const judge = typeof field === 'string' ? earlier.get(field) : undefined;
  if (judge === undefined) return problems;
  if (!Array.isArray(value)) {
    return [...problems, ...judge(known, value, `${path}.${value === undefined ? 'field' : 'value'}`)];
  }
  if (value.length === 0)
    return [...problems, { path: `${path}.value`, code: 'too_small', message: NO_VALUES }];
  return [...problems, ...value.flatMap((each, at) => judge(known, each, `${path}.value.${at}`))];
}

const NO_VALUES = 'Expected at least one value: this would always hold, or never';

function valueFault(op: ConditionOp, value: unknown): Pick<Violation, 'code' | 'message'> | undefined {
  if (op === 'empty' || op === 'notEmpty') {
    return value === undefined ? undefined : { code: 'unrecognized_keys', message: `"${op}" takes no value` };
  }
  if (value === undefined) return { code: 'invalid_type', message: 'Required' };
  const wantsList = op === 'in' || op === 'nin';
  if (wantsList === Array.isArray(value)) return undefined;
  const message = wantsList ? `"${op}" takes a list of values` : `"${op}" takes one value, not a list`;
  return { code: 'invalid_type', message };
}

/** Every part of a condition, in the order of reading. */
function walk(input: unknown, path: string, depth: number): Node[] {
  if (!isObject(input)) return [];
  return [
    { input, path, depth },
    ...walkList(input.all, `${path}.all`, depth),
    ...walkList(input.any, `${path}.any`, depth),
    ...walk(input.not, `${path}.not`, depth + 1),
  ];
}

function walkList(input: unknown, path: string, depth: number): Node[] {
  if (!Array.isArray(input)) return [];
  return input.flatMap((each, index) => walk(each, `${path}.${index}`, depth + 1));
}

/** More than people can follow, and still cheap to evaluate at each submission. */
const MAX_DEPTH = 5;

/**
 * What is wrong with comparing the answers of a field with a value, or with one of a list; the value is undefined for
 * operators without one.
 */
export type ComparisonProblems = (op: ConditionOp, value: unknown, path: string) => readonly Violation[];

/** Undefined for fields whose answers are not known. */
type EarlierFields = ReadonlyMap<string, ComparisonProblems | undefined>;

type Node = { input: Record<string, unknown>; path: string; depth: number };
