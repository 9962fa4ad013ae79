import type { Answers } from '../answers/answers.ts';
import type { Field } from '../definition/definition.ts';
import { isShown } from '../fields/field.ts';
import { ownValue } from '../json/json.ts';
import { memoize } from '../memoize.ts';
import { type Condition, evaluate, isEmpty } from './condition.ts';

/**
 * Returns the fields that a person sees, with conditions that name only fields they see.
 *
 * `unseenAnswers` are the values of fields that they do not see. What depends on them is decided here, so that the
 * page need not have them: a field that they rule out is left out, and a condition that they fulfil is dropped.
 * A field that is not seen may itself be conditional; then its condition stands in for the comparison.
 * Agent hints are left out.
 */
export function shownFields(fields: readonly Field[], unseenAnswers: Answers): Field[] {
  return undecidedFields(fields, isShown, unseenAnswers).map(withoutHint);
}

/**
 * Returns the fields for which `isOpen`, with conditions that name only such fields: the others have the answers
 * given, or none, and what depends on them is decided. What they rule out is left out.
 */
export function undecidedFields(
  fields: readonly Field[],
  isOpen: (field: Field) => boolean,
  answers: Answers,
): Field[] {
  return decide(fields, isOpen, answers).flatMap(({ field, condition }) => {
    if (!isOpen(field) || condition === false) return [];
    if (condition === undefined || condition === field.visibleWhen) return [field];
    const { visibleWhen: _, ...rest } = field;
    return [condition === true ? rest : { ...rest, visibleWhen: condition }];
  });
}

/**
 * Returns the required fields of agents that lack an answer, unless the answers of fields that people do not see rule
 * them out: where people's own answers decide, the page could not ask for what an agent left open.
 */
export function lackingFromAgent(fields: readonly Field[], answers: Answers): Field[] {
  return lacking(fields, answers, ({ answeredBy }) => answeredBy === 'agent');
}

/**
 * Returns the required hidden fields that lack a value, which only the maker of a link can give. Those that people's own
 * answers may rule out are left out.
 */
export function lackingFromLink(fields: readonly Field[], answers: Answers): Field[] {
  return lacking(fields, answers, ({ answeredBy }, isMet) => answeredBy !== 'agent' && isMet === true);
}

function lacking(
  fields: readonly Field[],
  answers: Answers,
  isMeant: (field: Field, condition: Reduced) => boolean,
): Field[] {
  const isNeeded = (field: Field) => field.required && field.defaultValue === undefined && !isShown(field);
  const settled = fields.some(isNeeded) ? decide(fields, isShown, answers) : [];
  return settled.flatMap(({ field, condition = true }) => {
    if (!isNeeded(field) || condition === false || !isMeant(field, condition)) return [];
    return isEmpty(ownValue(answers, field.id)) ? [field] : [];
  });
}

/** What is left of each field's condition when all but the open fields are known; undefined: it has none. */
function decide(
  fields: readonly Field[],
  isOpen: (field: Field) => boolean,
  answers: Answers,
): { field: Field; condition: Reduced | undefined }[] {
  const known = new Map<string, KnownField>();
  let room = MAX_STANDING_IN;
  return fields.map((field) => {
    const { visibleWhen } = field;
    const decidable = visibleWhen !== undefined && known.size > 0;
    let condition = decidable ? reduce(visibleWhen, known) : visibleWhen;
    if (condition !== visibleWhen && typeof condition === 'object') {
      room -= lengthOf(condition, room);
      if (room < 0) condition = true;
    }
    if (!isOpen(field)) {
      const answer = ownValue(answers, field.id);
      const own = answer === undefined ? {} : { [field.id]: answer };
      known.set(field.id, { answers: own, condition: condition ?? true });
    }
    return { field, condition };
  });
}

/**
 * As JSON, of all conditions of a form in which others stand in for comparisons. Each can double with every field
 * that depends on the one before. Fields beyond it are shown always; what is not part of the form is dropped later.
 */
const MAX_STANDING_IN = 256 * 1024;

/** The length of a condition as JSON, or any number above `room` if it is longer. */
function lengthOf(condition: Condition, room: number): number {
  if ('not' in condition) return BRACES + lengthOf(condition.not, room);
  if ('field' in condition) return JSON.stringify(condition).length;
  let length = BRACES;
  for (const part of 'all' in condition ? condition.all : condition.any) {
    length += lengthOf(part, room - length);
    if (length > room) break;
  }
  return length;
}

/** `{"all":[]}` */
const BRACES = 10;

const withoutHint = memoize((field: Field): Field => {
  const { agentHint: _, ...rest } = field;
  return rest;
});

/** True and false are decided; a condition remains for what open fields decide. */
function reduce(condition: Condition, known: Map<string, KnownField>): Reduced {
  if ('all' in condition) return reduceList(condition.all, known, false, (rest) => ({ all: rest }));
  if ('any' in condition) return reduceList(condition.any, known, true, (rest) => ({ any: rest }));
  if ('not' in condition) {
    const reduced = reduce(condition.not, known);
    return typeof reduced === 'boolean' ? !reduced : { not: reduced };
  }
  const field = known.get(condition.field);
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
  known: Map<string, KnownField>,
  decisive: boolean,
  join: (rest: Condition[]) => Condition,
): Reduced {
  const rest: Condition[] = [];
  for (const part of parts) {
    const reduced = reduce(part, known);
    if (reduced === decisive) return decisive;
    if (typeof reduced !== 'boolean') rest.push(reduced);
  }
  const [only] = rest;
  if (only === undefined) return !decisive;
  return rest.length === 1 ? only : join(rest);
}

type Reduced = Condition | boolean;

/** The answer of a field that is not open, and the condition under which the field is part of the form. */
type KnownField = { answers: Answers; condition: Reduced };
