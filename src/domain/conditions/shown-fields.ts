import type { Answers } from '../answers/answers.ts';
import type { Field } from '../definition/definition.ts';
import { memoize } from '../memoize.ts';
import { type Condition, evaluate } from './condition.ts';

/**
 * Returns the fields that a person sees, with conditions that name only fields they see.
 *
 * `hiddenAnswers` are the values of hidden fields. What depends on them is decided here, so that the page need
 * not have them: a field that they rule out is left out, and a condition that they fulfil is dropped.
 * A hidden field may itself be conditional; then its condition stands in for the comparison.
 * Agent hints are left out.
 */
export function shownFields(fields: readonly Field[], hiddenAnswers: Answers): Field[] {
  const hidden = new Map<string, HiddenField>();
  return fields.flatMap((field) => {
    const { visibleWhen } = field;
    if (!field.hidden && (visibleWhen === undefined || hidden.size === 0)) return [withoutHint(field)];
    const condition = visibleWhen === undefined ? true : reduce(visibleWhen, hidden);
    if (field.hidden) {
      const answer = Object.hasOwn(hiddenAnswers, field.id) ? hiddenAnswers[field.id] : undefined;
      hidden.set(field.id, { answers: answer === undefined ? {} : { [field.id]: answer }, condition });
      return [];
    }
    if (condition === false) return [];
    const { visibleWhen: _, ...rest } = withoutHint(field);
    return [condition === true ? rest : { ...rest, visibleWhen: condition }];
  });
}

const withoutHint = memoize((field: Field): Field => {
  const { agentHint: _, ...rest } = field;
  return rest;
});

/** True and false are decided; a condition remains for what people's own answers decide. */
function reduce(condition: Condition, hidden: Map<string, HiddenField>): Reduced {
  if ('all' in condition) return reduceList(condition.all, hidden, false, (rest) => ({ all: rest }));
  if ('any' in condition) return reduceList(condition.any, hidden, true, (rest) => ({ any: rest }));
  if ('not' in condition) {
    const reduced = reduce(condition.not, hidden);
    return typeof reduced === 'boolean' ? !reduced : { not: reduced };
  }
  const field = hidden.get(condition.field);
  if (field === undefined) return condition;

  const present = evaluate(condition, field.answers);
  const absent = evaluate(condition, {});
  if (field.condition === true || present === absent) return present;
  if (field.condition === false) return absent;
  return present ? field.condition : { not: field.condition };
}

/** `decisive` is the value of one part that decides the whole list. */
function reduceList(
  parts: Condition[],
  hidden: Map<string, HiddenField>,
  decisive: boolean,
  join: (rest: Condition[]) => Condition,
): Reduced {
  const rest: Condition[] = [];
  for (const part of parts) {
    const reduced = reduce(part, hidden);
    if (reduced === decisive) return decisive;
    if (typeof reduced !== 'boolean') rest.push(reduced);
  }
  const [only] = rest;
  if (only === undefined) return !decisive;
  return rest.length === 1 ? only : join(rest);
}

type Reduced = Condition | boolean;

/** A hidden field's answer, and the condition under which the field is part of the form. */
type HiddenField = { answers: Answers; condition: Reduced };
