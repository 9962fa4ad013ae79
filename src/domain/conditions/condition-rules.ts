import { z } from 'zod';
import { custom, type Violation } from '../errors/violations.ts';
import { isObject, isScalar } from '../json/json.ts';
import { formLimits } from '../limits/limits.ts';
import { type Condition, type ConditionOp, conditionOps, instantOf, isEmpty } from './condition.ts';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const MAX_NODES = 100;

const comparison = z
  .strictObject({
    field: z.string().min(1).max(formLimits.fieldId).describe('The id of an earlier field.'),
    op: z.enum(conditionOps).describe('How to compare.'),
    value: z
      .union([z.string(), z.number(), z.boolean(), z.null(), z.array(scalar).max(formLimits.options)])
      .exactOptional()
      .describe('What to compare with; a list for `in` and `nin`, absent for `empty` and `notEmpty`.'),
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
 * What is wrong with a field's condition beyond its shape: its size, the fields and options it names, and
 * operators without their value.
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
  const choices = typeof field === 'string' ? earlier.get(field) : undefined;
  if (choices === undefined || !namesOptions(known, choices)) return problems;
  const place = `${path}.value`;
  const unknown = Array.isArray(value)
    ? value.flatMap((each, at) => optionProblems(each, choices, `${place}.${at}`))
    : optionProblems(value, choices, place);
  return [...problems, ...unknown];
}

/** Whether what an operator compares with is an option. The others look for a part of a text, or for an order. */
function namesOptions(op: ConditionOp, { isList }: Choices): boolean {
  return ['eq', 'ne', 'in', 'nin'].includes(op) || (op === 'contains' && isList);
}

/** A condition on an option that its field lacks would always hold, or never. Some values mean that there is no answer. */
function optionProblems(value: unknown, { options }: Choices, path: string): Violation[] {
  if (isEmpty(value) || value === false || !isScalar(value)) return [];
  // Nearly all are options as they stand. To look for times in thousands of texts takes longer than all else here.
  if (typeof value === 'string' && (options.has(value) || options.has(comparedAs(value)))) return [];
  const named = JSON.stringify(value).slice(0, MAX_SHOWN);
  return [{ path, code: 'invalid_enum_value', message: `The field has no option ${named}` }];
}

/** Two texts are equal to conditions if these are the same. */
function comparedAs(text: string): string | number {
  const instant = instantOf(text);
  return Number.isNaN(instant) ? text : instant;
}

/** The options that an answer names, to look up what conditions compare with: a form can have thousands of both. */
export function choicesOf(options: readonly string[], isList: boolean): Choices {
  return { options: new Set(options.map(comparedAs)), isList };
}

/** As many characters of a value as tell which one it is. */
const MAX_SHOWN = 60;

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

/** `undefined` for fields whose answers may be anything else than options. */
type EarlierFields = ReadonlyMap<string, Choices | undefined>;

/** A field's options; `isList` if an answer is several of them. */
export type Choices = { options: ReadonlySet<string | number>; isList: boolean };

type Node = { input: Record<string, unknown>; path: string; depth: number };
