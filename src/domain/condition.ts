import type { JsonScalar } from './json.ts';

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

/** Whether a condition holds for answers. The same code runs on the server and in the hosted page. */
export function evaluate(_condition: Condition, _answers: Readonly<Record<string, unknown>>): boolean {
  throw new Error('not there yet');
}

/** What must hold for a field to be visible. */
export type Condition = Comparison | { all: Condition[] } | { any: Condition[] } | { not: Condition };

/** Compares the answer of one field. `value` is absent for `empty` and `notEmpty`. */
export type Comparison = { field: string; op: ConditionOp; value?: JsonScalar | JsonScalar[] };

export type ConditionOp = (typeof conditionOps)[number];
