import { asciiAddress } from '../addresses/ascii-address.ts';
import type { FormDefinition } from '../definition/definition.ts';
import { hasWords } from '../fields/boolean.ts';
import { type Field, isShown, takesAnswer } from '../fields/field.ts';
import type { Typed } from '../fields/field-type.ts';
import { fieldRules } from '../fields/index.ts';
import { numberText, readNumber } from '../fields/number-text.ts';
import { foldPhone } from '../fields/phone-number.ts';
import { readText } from '../fields/text.ts';
import { withScheme } from '../fields/web-address.ts';
import { isObject, type Json, ownValue } from '../json/json.ts';
import { normalForms } from '../text/typed-signs.ts';
import type { Answers } from './answers.ts';

/**
 * Reads the texts of an HTML form as answers, each by its field's type.
 *
 * Names that are no field's are dropped. A text that can't be read stays text, so that
 * `checkAnswers` names it. Of an input that came several times the last counts, as with the usual
 * pair of a hidden and a ticked input; a `multi_select` and a `file` that takes several count them
 * all. Line breaks become LF, and a datetime without offset, which is what browsers have, reads
 * as UTC. Answers of several parts have an input for each: `home.city`. `humanOnly` leaves out fields that the page
 * does not show: what a human could not see, a human did not answer.
 */
export function readInputs(
  definition: Pick<FormDefinition, 'fields'>,
  inputs: readonly FormInput[],
  { humanOnly = false, ...typed }: { humanOnly?: boolean } & Typed = {},
): { [fieldId: string]: Json } {
  const byName = new Map(inputs.map(({ name, values }) => [name, values]));
  const answers: { [fieldId: string]: Json } = {};
  for (const field of definition.fields) {
    if (!takesAnswer(field) || (humanOnly && !isShown(field))) continue;
    if (inputNames(field).every((name) => (byName.get(name) ?? []).length === 0)) continue;
    const part = (name: string) => byName.get(`${field.id}.${name}`) ?? [];
    const values = byName.get(field.id) ?? [];
    answers[field.id] = fieldRules[field.type].readInput(values, field, part, typed);
  }
  return answers;
}

/** The names of a field's inputs in an HTML form: its id, and that with a dot and the name of a part. */
export function inputNames(field: Field): string[] {
  const parts = fieldRules[field.type].parts?.(field) ?? [];
  return [field.id, ...parts.map((part) => `${field.id}.${part}`)];
}

/** An answer as the texts of its field's inputs in a language, by their names; an upload is its id. */
export function inputTexts(field: Field, answer: unknown, language: string): [string, readonly string[]][] {
  const { toInputs } = fieldRules[field.type];
  if (toInputs === undefined) return [[field.id, [answer].flat().map((each) => textOf(each, language))]];
  // What a session holds was checked when it was stored.
  return Object.entries(toInputs(answer as Json, field)).map(([part, values]) => [
    part === '' ? field.id : `${field.id}.${part}`,
    values,
  ]);
}

function textOf(answer: unknown, language: string): string {
  if (isObject(answer)) return 'upload_id' in answer ? String(answer.upload_id) : '';
  if (typeof answer === 'number') return numberText(answer, language);
  return typeof answer === 'string' || typeof answer === 'boolean' ? String(answer) : '';
}

/** An input of a form and its values, in the order they were sent. */
export type FormInput = { name: string; values: readonly string[] };

/**
 * What a value that somebody looks for may have become as an answer: fields trim, read numbers, put a scheme before web
 * addresses, fold telephone numbers and domains, and end lines with LF.
 *
 * `texts` are to be compared without spaces around them and without regard to case. A database whose locale is C knows
 * the case of ASCII alone, so they come in both cases, and letters with marks both as one character and as two.
 */
export function soughtValue(value: string): SoughtValue {
  const text = readText([value]).trim();
  const number = readNumber(text);
  const texts = [asciiAddress(text), asciiAddress(withScheme(text)), text, foldPhone(text)]
    .flatMap(normalForms)
    .flatMap((normal) => [normal, normal.toLowerCase(), normal.toUpperCase()]);
  return { texts: [...new Set(texts)], number: typeof number === 'number' ? number : undefined };
}

/** `number` is undefined if the value is none. */
export type SoughtValue = { texts: string[]; number: number | undefined };

/**
 * Returns answers as people read them, in the order of the fields: the labels of choices, the names of
 * files, days and instants (in UTC, and saying so), yes and no in the form's language, else in the
 * first of `preferred` that there are words for, else in English.
 *
 * Fields without an answer are left out; so are those that people do not see, unless `hiddenToo`.
 */
export function answersInWords(
  definition: FormDefinition,
  answers: Answers,
  options: { hiddenToo?: boolean; preferred?: readonly string[] } = {},
): AnswerInWords[] {
  const { fields } = definition;
  const locale = localeOf(definition, options.preferred);
  return fields.flatMap((field) => {
    if (!isShown(field) && options.hiddenToo !== true) return [];
    const answer = ownValue(answers, field.id);
    if (answer === undefined || answer === null || answer === '') return [];
    return [
      { fieldId: field.id, label: field.label, text: fieldRules[field.type].inWords(answer, field, locale) },
    ];
  });
}

/** The language of words such as yes and no: the form's, or else the first of the reader's that has them. */
export function localeOf(
  { settings }: Pick<FormDefinition, 'settings'>,
  preferred: readonly string[] = [],
): string {
  return settings.locale ?? preferred.find(hasWords) ?? 'en';
}

export type AnswerInWords = { fieldId: string; label: string; text: string };
