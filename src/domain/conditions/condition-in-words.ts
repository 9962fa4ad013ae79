import type { Comparison, Condition, ConditionOp } from './condition.ts';

/** A condition as an English phrase that names fields by their ids: `plan is "pro" and seats is more than 5`. */
export function conditionInWords(condition: Condition): string {
  return phrase(condition, false);
}

/** `inner`: parts of a list are to be put in parentheses. */
function phrase(condition: Condition, inner: boolean): string {
  if ('all' in condition) return joined(condition.all, ' and ', inner);
  if ('any' in condition) return joined(condition.any, ' or ', inner);
  if ('not' in condition) return `not (${phrase(condition.not, false)})`;
  const { field, op, value } = condition;
  return `${field} ${verbs[op]}${op === 'empty' || op === 'notEmpty' ? '' : ` ${valueInWords(value)}`}`;
}

function joined(conditions: Condition[], word: string, inner: boolean): string {
  const [only] = conditions;
  if (only !== undefined && conditions.length === 1) return phrase(only, inner);
  const text = conditions.map((each) => phrase(each, true)).join(word);
  return inner ? `(${text})` : text;
}

function valueInWords(value: Comparison['value']): string {
  return Array.isArray(value)
    ? value.map((each) => JSON.stringify(each)).join(', ')
    : JSON.stringify(value ?? null);
}

const verbs: Record<ConditionOp, string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  nin: 'is none of',
  lt: 'is less than',
  lte: 'is at most',
  gt: 'is more than',
  gte: 'is at least',
  contains: 'contains',
  empty: 'has no answer',
  notEmpty: 'has an answer',
};
