import { evaluate, isEmpty } from '../conditions/condition.ts';
import type { Field, FormDefinition } from '../definition/definition.ts';
import {
  answeredByPerson,
  atMost,
  required,
  unrecognized,
  type Violation,
  wrongType,
} from '../errors/violations.ts';
import { takesAnswer } from '../fields/field.ts';
import type { AnswerCheck } from '../fields/field-type.ts';
import { fieldRules } from '../fields/index.ts';
import { isObject, type Json, ownValue } from '../json/json.ts';
import { memoize } from '../memoize.ts';
import { type PatternTest, startMatching } from '../patterns/pattern.ts';
import { inNfc, isBlank, isInvisible } from '../text/typed-signs.ts';

/**
 * Prepares a definition for checking answers: once per version, then a few microseconds a call.
 *
 * Expects a definition that `checkDefinition` has accepted.
 */
export function compileForm(definition: FormDefinition): CompiledForm {
  const asked = new Map(definition.fields.filter(takesAnswer).map((field) => [field.id, field]));
  const fields = [...asked.values()].map(compileField);
  const folded = (answers: Answers) =>
    Object.fromEntries(
      Object.entries(answers).map(([id, answer]) => [id, foldAnswer(asked.get(id), answer)]),
    );
  return {
    definition,
    checkAnswers: (answers, { root = 'answers', required: isWhole = true, base, byPerson = false } = {}) => {
      if (answers === undefined) return { ok: false, violations: [required(root)] };
      if (!isJsonObject(answers)) {
        return { ok: false, violations: [wrongType(root, 'object', answers)] };
      }
      const violations: Violation[] = [];
      const given = folded(answers);
      const check = { root, violations, match: startMatching(), byPerson };
      const clean = isWhole ? checkWhole(fields, given, base, check) : checkGiven(fields, given, check);
      const unknown = Object.keys(answers).filter((key) => !asked.has(key));
      if (violations.length === 0 && unknown.length === 0) return { ok: true, answers: clean };
      const all = [...violations, ...unrecognized(root, unknown, asked.keys())];
      return { ok: false, violations: atMost(all), ...(!isWhole && { fitting: clean }) };
    },
    checkPosted: (answers, base) => checkPosted(fields, folded(answers), base),
  };
}

/**
 * An answer as it is checked, compared and stored: texts that nobody can see are none, what is an option in another
 * normal form of Unicode is that option, and some types of fields have forms of their own.
 */
export function foldAnswer(field: Field | undefined, answer: Json): Json {
  if (field === undefined) return answer;
  if (typeof answer === 'string') return foldText(field, answer);
  if (Array.isArray(answer)) return answer.map((each) => foldAnswer(field, each));
  if (!isObject(answer)) return answer;
  return Object.fromEntries(Object.entries(answer).map(([part, each]) => [part, foldAnswer(field, each)]));
}

function foldText(field: Field, text: string): string {
  const option = optionsOf(field).get(inNfc(text));
  return option ?? (isInvisible(text) ? '' : fieldRules[field.type].fold?.(text) || text);
}

/** The values of options, by what they are compared as. */
const optionsOf = memoize(
  ({ options = [] }: Field) => new Map(options.map(({ value }) => [inNfc(value), value])),
);

/** Lays answers over each other, lowest first: a present key wins, also with null or an empty answer. */
export function mergeAnswers(...layers: (Answers | undefined)[]): Answers {
  return Object.assign({}, ...layers);
}

/** Partial answers and prefill: only what is given, each by itself. */
function checkGiven(fields: CompiledField[], answers: Answers, check: Check): Answers {
  const { root, violations, match, byPerson } = check;
  const clean: Answers = {};
  for (const { id, onlyByPerson, check: checkAnswer } of fields) {
    const answer = ownValue(answers, id);
    if (answer === undefined) continue;
    if (onlyByPerson && !byPerson) {
      violations.push(answeredByPerson(`${root}.${id}`));
      continue;
    }
    if (isEmpty(answer)) {
      clean[id] = null;
      continue;
    }
    const wrong = checkAnswer(answer, `${root}.${id}`, match);
    violations.push(...wrong);
    if (wrong.length === 0) clean[id] = answer;
  }
  return clean;
}

/** Conditions name earlier fields only, so one pass in order knows all that they ask about. */
function checkWhole(
  fields: CompiledField[],
  answers: Answers,
  base: Answers | undefined,
  { root, violations, match, byPerson }: Check,
): Answers {
  const clean: Answers = {};
  for (const field of fields) {
    if (field.visibleWhen !== undefined && !evaluate(field.visibleWhen, clean)) continue;
    const path = `${root}.${field.id}`;
    if (field.onlyByPerson && !byPerson) {
      const answer = base && ownValue(base, field.id);
      const lacks = isEmpty(answer);
      const touched = !isEmpty(ownValue(answers, field.id)) || (!lacks && Object.hasOwn(answers, field.id));
      if (touched || (lacks && field.required)) violations.push(answeredByPerson(path));
      else if (answer !== undefined && !lacks) clean[field.id] = answer;
      continue;
    }
    const answer = settle(field, answers, base);
    if (answer === undefined) {
      if (field.required) violations.push(required(path));
      continue;
    }
    violations.push(...field.check(answer, path, match));
    for (const part of field.lacking(answer)) violations.push(required(`${path}.${part}`));
    clean[field.id] = answer;
  }
  return clean;
}

/**
 * Both at once, so that each answer is checked once. An answer that does not fit leaves in place what lies below it.
 */
function checkPosted(fields: CompiledField[], answers: Answers, base: Answers): PostedAnswers {
  const match = startMatching();
  const [fitting, clean]: [Answers, Answers] = [{}, {}];
  const [refused, violations]: [Violation[], Violation[]] = [[], []];
  for (const field of fields) {
    const path = `answers.${field.id}`;
    const given = ownValue(answers, field.id);
    const isGiven = given !== undefined && !isEmpty(given);
    const wrong = isGiven ? field.check(given, path, match) : [];
    const fits = wrong.length === 0;
    refused.push(...wrong);
    if (fits && given !== undefined) fitting[field.id] = isGiven ? given : null;

    if (field.visibleWhen !== undefined && !evaluate(field.visibleWhen, clean)) continue;
    violations.push(...wrong);
    const answer = settle(field, fits ? answers : {}, base);
    if (answer === undefined) {
      if (field.required && fits) violations.push(required(path));
      continue;
    }
    if (!isGiven) violations.push(...field.check(answer, path, match));
    if (fits) violations.push(...field.lacking(answer).map((part) => required(`${path}.${part}`)));
    clean[field.id] = answer;
  }
  const whole: AnswersResult =
    violations.length === 0 ? { ok: true, answers: clean } : { ok: false, violations: atMost(violations) };
  return { fitting, refused: atMost(refused), whole };
}

/** The answer that counts: what is given, else what the session holds, else the default. */
function settle(field: CompiledField, answers: Answers, base: Answers | undefined): Json | undefined {
  const layer = base !== undefined && !Object.hasOwn(answers, field.id) ? base : answers;
  const answer = ownValue(layer, field.id);
  if (!isUnanswered(field, answer)) return answer;
  const cleared = base !== undefined && Object.hasOwn(layer, field.id);
  return cleared ? undefined : copyOf(field.defaultValue);
}

/** Whether this is no answer to the field: nothing, or only spaces where a text is required. */
export function isUnanswered({ type, required }: Field, answer: unknown): boolean {
  if (isEmpty(answer) || typeof answer !== 'string') return isEmpty(answer);
  return required && fieldRules[type].needsMoreThanSpaces === true ? isBlank(answer) : isInvisible(answer);
}

function compileField(field: Field): CompiledField {
  const { check, lacking } = fieldRules[field.type];
  return {
    ...field,
    onlyByPerson: field.answeredBy === 'human',
    check: check(field),
    lacking: (answer) => (field.required ? (lacking?.(answer, field) ?? []) : []),
  };
}

/** All submissions share a field's default, and who receives answers may change them. */
function copyOf(value: Json | undefined): Json | undefined {
  return Array.isArray(value) ? [...value] : value;
}

/** Callers pass parsed JSON, so that only its type is to be checked. */
function isJsonObject(value: unknown): value is Answers {
  return isObject(value);
}

/** Answers keyed by field id, in the order of the fields. */
export type Answers = { [fieldId: string]: Json };

/** A definition made ready for checking answers. */
export type CompiledForm = {
  definition: FormDefinition;
  /** Checks answers and gives them back clean, in the order of the fields, or names every problem. */
  checkAnswers: (answers: unknown, options?: AnswersOptions) => AnswersResult;
  /**
   * Checks what a person has posted so far, over what their session holds already (`base`). Answers are of fields of
   * the form, as `readInputs` gives them.
   */
  checkPosted: (answers: Answers, base: Answers) => PostedAnswers;
};

export type AnswersOptions = {
  /** The first part of each violation's path; `answers` if absent. */
  root?: 'answers' | 'prefill';
  /**
   * False for partial answers and prefill: each given one must be valid, none is required, no
   * default fills in, nothing is dropped, and an empty answer becomes null, which clears what lies
   * below it. True if absent.
   */
  required?: boolean;
  /**
   * What a session already holds (partial answers over prefill). The answers are laid over it, and
   * then an empty one clears: not even a default fills in. Without it an empty answer is none, and
   * the default fills in.
   */
  base?: Answers | undefined;
  /**
   * Whether they come from the hosted page. Otherwise fields that only a person may answer are refused if an answer is
   * given, or if `base` lacks a required one; not even their default fills in.
   */
  byPerson?: boolean;
};

export type AnswersResult = { ok: true; answers: Answers } | Refused;

/** `fitting` are those of partial answers, or of a prefill, that nothing is wrong with. */
type Refused = { ok: false; violations: Violation[]; fitting?: Answers };

/** What was posted, each answer by itself and all together. */
type PostedAnswers = {
  /** The answers that fit by themselves; null clears what lies below. */
  fitting: Answers;
  /** What is wrong with the others. */
  refused: Violation[];
  /** What would be submitted, or all that stands in the way. */
  whole: AnswersResult;
};

/** One check of answers, which adds to `violations`. */
type Check = { root: string; violations: Violation[]; match: PatternTest; byPerson: boolean };

type CompiledField = Field & {
  onlyByPerson: boolean;
  check: AnswerCheck;
  /** What a required answer has no part for. */
  lacking: (answer: Json) => readonly string[];
};
