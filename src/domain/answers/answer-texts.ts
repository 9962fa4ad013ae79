import { asciiAddress } from '../addresses/ascii-address.ts';
import type { FormDefinition } from '../definition/definition.ts';
import { custom, type Violation } from '../errors/violations.ts';
import { quoted } from '../errors/zod-messages.ts';
import { hasWords } from '../fields/boolean.ts';
import { type Field, type FieldType, isShown, takesAnswer } from '../fields/field.ts';
import type { Control, Typed } from '../fields/field-type.ts';
import { fieldRules } from '../fields/index.ts';
import { numberText, readNumber } from '../fields/number-text.ts';
import { OTHER, OTHER_CHOSEN } from '../fields/select.ts';
import { readText } from '../fields/text.ts';
import { withScheme } from '../fields/web-address.ts';
import { isObject, type Json, ownValue } from '../json/json.ts';
import { foreignNames } from '../limits/limits.ts';
import { foldPhone, isBlank, normalForms } from '../text/typed-signs.ts';
import type { Answers } from './answers.ts';

/**
 * Reads the texts of an HTML form as answers, each by its field's type.
 *
 * Names that are no field's, in no spelling of `namedInputs`, are dropped. A text that can't be read stays text, so that
 * `checkAnswers` names it. Of an input that came several times the last counts, as with the usual
 * pair of a hidden and a ticked input; a `multi_select` and a `file` that takes several count them
 * all. Line breaks become LF, and a datetime without offset, which is what browsers have, reads
 * as UTC. Answers of several parts have an input for each: `home.city`. `humanOnly` leaves out fields that the page
 * does not show: what a human could not see, a human did not answer. `fromLink`: programs may have passed them on.
 */
export function readInputs(
  definition: Pick<FormDefinition, 'fields'>,
  inputs: readonly FormInput[],
  options: ReadOptions = {},
): { [fieldId: string]: Json } {
  return readNamed(definition, namedInputs(definition.fields, inputs).byName, options);
}

/** Does what `readInputs` does, for inputs by the very names that fields have. */
export function readNamed(
  { fields }: Pick<FormDefinition, 'fields'>,
  byName: NamedInputs['byName'],
  { humanOnly = false, fromLink = false, ...typed }: ReadOptions = {},
): { [fieldId: string]: Json } {
  const answers: { [fieldId: string]: Json } = {};
  for (const field of fields) {
    if (!takesAnswer(field) || (humanOnly && !isShown(field))) continue;
    if (inputNames(field).every((name) => (byName.get(name) ?? []).length === 0)) continue;
    const part = (name: string) => byName.get(`${field.id}.${name}`) ?? [];
    const texts = byName.get(field.id) ?? [];
    const values = fromLink ? texts.map(plusIn[field.type] ?? String) : texts;
    answers[field.id] = fieldRules[field.type].readInput(values, field, part, typed);
  }
  return answers;
}

type ReadOptions = { humanOnly?: boolean; fromLink?: boolean } & Typed;

/** Programs that pass a link on write `+` for itself, which then stands for a space. */
const plusIn: Partial<Record<FieldType, (text: string) => string>> = {
  email: (text) => text.trim().replaceAll(' ', '+'),
  phone: (text) => text.replace(/^ (?=[1-9])/, '+'),
};

/** What is wrong where a text beside the options was chosen and not written: an answer would be lost. */
export function unwrittenOthers(fields: readonly Field[], inputs: readonly FormInput[]): Violation[] {
  const last = (wanted: string) => inputs.findLast(({ name }) => name === wanted)?.values.at(-1) ?? '';
  return fields.flatMap(({ id, allowOther }) => {
    const path = `${id}.${OTHER}`;
    const isUnwritten = allowOther === true && last(id) === OTHER_CHOSEN && isBlank(last(path));
    return isUnwritten ? [custom(`answers.${path}`, 'Must be written')] : [];
  });
}

/**
 * The values of inputs by the names that fields have, whose inputs may be spelled as static sites do: `topics[]` and
 * `topics[0]` for `topics`, `home[city]` for `home.city`, and in upper or lower case where only one field can be meant
 * that does not come by its own name. `unknown` are the names that no field has.
 */
export function namedInputs(fields: readonly Field[], inputs: readonly FormInput[]): NamedInputs {
  const exact = new Set(fields.filter(takesAnswer).flatMap(inputNames));
  const alike = Map.groupBy(exact, (name) => name.toLowerCase());
  const exactOf = ({ name }: FormInput) => spellingsOf(name).find((spelling) => exact.has(spelling));
  const came = new Set(inputs.map(exactOf));
  const likeOf = (spelling: string) => {
    const [only, ...others] = alike.get(spelling.toLowerCase()) ?? [];
    return others.length === 0 && !came.has(only) ? only : undefined;
  };
  const meantBy = (input: FormInput) =>
    exactOf(input) ??
    spellingsOf(input.name)
      .map(likeOf)
      .find((name) => name !== undefined);
  const { '': unknown = [], ...named } = Object.groupBy(inputs, (input) => meantBy(input) ?? '');
  const byName = Object.entries(named).map(([name, same = []]): [string, string[]] => [
    name,
    same.flatMap(({ values }) => values),
  ]);
  return { byName: new Map(byName), unknown: unknown.map(({ name }) => name) };
}

/** What a name may stand for; the value of a row may be a number, too. */
function spellingsOf(name: string): string[] {
  if (!name.endsWith(']')) return [name];
  const dotted = (text: string) => text.replace(/\[\]$/, '').replace(/\[([^[\]]+)\]$/, '.$1');
  return [name, dotted(name), dotted(name.replace(/\[\d+\]$/, ''))];
}

type NamedInputs = { byName: ReadonlyMap<string, readonly string[]>; unknown: string[] };

/**
 * What is wrong with a post of a site's own form with no name of a field, if the form asks what browsers always send;
 * without such a field the post may be one of boxes without a tick. `names` are those that came.
 */
export function foreignPost({ fields }: FormDefinition, names: readonly string[]): Violation[] {
  const own = fields.filter((field) => takesAnswer(field) && (field.answeredBy ?? 'anyone') === 'anyone');
  const isAsked = ({ type, hidden }: Field) => !hidden && alwaysSent.includes(fieldRules[type].control);
  if (!own.some(isAsked)) return [];
  const shown = names.slice(0, foreignNames.shown).map((name) => quoted(name, foreignNames.length));
  const came = [...shown, ...(names.length > shown.length ? ['…'] : [])].join(', ');
  const message = `The post has none of the form’s fields ${own.map(({ id }) => quoted(id)).join(', ')}${came && `, but ${came}`}`;
  return [{ path: 'answers', code: 'unrecognized_keys', message }];
}

/** The controls for which browsers send something whatever people do; for boxes without a tick they send nothing. */
const alwaysSent: readonly Control[] = ['line', 'textarea', 'select', 'address'];

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
  const literals = texts.map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return {
    texts: [...new Set(texts)],
    number: typeof number === 'number' ? number : undefined,
    mention: `(?<![[:alnum:]])(?:${[...new Set(literals)].join('|')})(?![[:alnum:]])`,
  };
}

/** `number` is undefined if the value is none; `mention` is a pattern of PostgreSQL for texts with the value as words. */
export type SoughtValue = { texts: string[]; number: number | undefined; mention: string };

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
