import type { JsonScalar } from '../json/json.ts';
import { inNfc } from '../text/typed-signs.ts';

/** The operators of a condition. */
export const conditionOps = [
  'eq',
  'ne',
  'in',
  'nin',
  'lt',
  'lte',
  'gt',
  'gte',
  'contains',
  'empty',
  'notEmpty',
] as const;

/**
 * Whether a condition holds for answers. The same code runs on the server and in the hosted page,
 * so this file imports nothing that is not as small.
 *
 * - No answer (absent, null, `''`, `[]`) is `empty`. It equals null, and false: a box that was not
 *   ticked. It is in no order, and contains nothing.
 * - `ne` and `nin` are what `eq` and `in` are not.
 * - `in` holds for a list if one of its choices is named. `contains` looks for a choice in a list,
 *   for a part in a text.
 * - `lt`, `lte`, `gt`, `gte` order numbers, and texts; two times of day, or two datetimes with
 *   offset, by the instant they mean. Values of different kinds are in no order.
 */
export function evaluate(condition: Condition, answers: Readonly<Record<string, unknown>>): boolean {
  if ('all' in condition) return condition.all.every((each) => evaluate(each, answers));
  if ('any' in condition) return condition.any.some((each) => evaluate(each, answers));
  if ('not' in condition) return !evaluate(condition.not, answers);
  const answer = Object.hasOwn(answers, condition.field) ? answers[condition.field] : undefined;
  return compare[condition.op](isEmpty(answer) ? undefined : composed(answer), composed(condition.value));
}

/** Texts look the same in all normal forms of Unicode, so they are compared in one. */
function composed<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(composed) as Value;
  return typeof value === 'string' ? (inNfc(value) as Value) : value;
}

/** Whether an answer is no answer: absent, null, an empty text or an empty list. */
export function isEmpty(answer: unknown): boolean {
  return (
    answer === undefined || answer === null || answer === '' || (Array.isArray(answer) && answer.length === 0)
  );
}

const compare: Record<ConditionOp, (answer: unknown, value: Comparison['value']) => boolean> = {
  empty: (answer) => answer === undefined,
  notEmpty: (answer) => answer !== undefined,
  eq: equal,
  ne: (answer, value) => !equal(answer, value),
  in: isIn,
  nin: (answer, value) => !isIn(answer, value),
  lt: (answer, value) => order(answer, value) < 0,
  lte: (answer, value) => order(answer, value) <= 0,
  gt: (answer, value) => order(answer, value) > 0,
  gte: (answer, value) => order(answer, value) >= 0,
  contains,
};

function equal(answer: unknown, value: unknown): boolean {
  if (answer === undefined) return isEmpty(value) || value === false;
  return answer === value || order(answer, value) === 0;
}

function isIn(answer: unknown, value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const given = Array.isArray(answer) ? answer : [answer];
  return given.some((each) => value.some((choice) => equal(each, choice)));
}

function contains(answer: unknown, value: unknown): boolean {
  if (Array.isArray(answer)) return answer.includes(value);
  return typeof answer === 'string' && typeof value === 'string' && value !== '' && holdsText(answer, value);
}

/**
 * Whether a text has another one in it, in a time that grows as the text does (the algorithm of Knuth, Morris and
 * Pratt). For long parts that nearly fit, `includes` takes as long as both lengths multiplied.
 */
function holdsText(text: string, part: string): boolean {
  if (part.length <= SHORT_PART) return text.includes(part);
  const codes = Uint16Array.from({ length: part.length }, (_, at) => part.charCodeAt(at));
  /** How much of the part still fits where a character of it does not; -1 for nothing, not even that character. */
  const fallback = new Int32Array(codes.length).fill(-1);
  const retreat = (from: number, code: number | undefined) => {
    let fitting = from;
    while (fitting >= 0 && codes[fitting] !== code) fitting = fallback[fitting] ?? -1;
    return fitting + 1;
  };
  for (let at = 1, fitting = 0; at < codes.length; at += 1) {
    fallback[at] = codes[at] === codes[fitting] ? (fallback[fitting] ?? -1) : fitting;
    fitting = retreat(fitting, codes[at]);
  }
  let fitting = 0;
  for (let at = 0; at < text.length && fitting < codes.length; at += 1)
    fitting = retreat(fitting, text.charCodeAt(at));
  return fitting === codes.length;
}

/** Up to here `includes` takes no longer, whatever the texts. */
const SHORT_PART = 24;

/** Below, at or above zero; NaN where there is no order, so that no comparison holds. */
function order(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN;
  const instants = [instantOfText(left), instantOfText(right)] as const;
  if (!Number.isNaN(instants[0]) && !Number.isNaN(instants[1])) return instants[0] - instants[1];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** When a time or a datetime is, in milliseconds since 1970, on whose first day a time of day counts; NaN for other texts. */
export function instantOfText(text: string): number {
  if (/^\d\d:\d\d(:\d\d)?$/.test(text)) return Date.parse(`1970-01-01T${text}Z`);
  return /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/i.test(text) ? Date.parse(text) : Number.NaN;
}

/** What must hold for a field to be visible. */
export type Condition = Comparison | { all: Condition[] } | { any: Condition[] } | { not: Condition };

/** Compares the answer of one field. `value` is absent for `empty` and `notEmpty`. */
export type Comparison = { field: string; op: ConditionOp; value?: JsonScalar | JsonScalar[] };

export type ConditionOp = (typeof conditionOps)[number];
