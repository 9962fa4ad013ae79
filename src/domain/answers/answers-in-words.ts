import { languageOfTag } from '../accept-language.ts';
import type { Field, FormDefinition } from '../definition/definition.ts';
import { isObject } from '../json.ts';
import type { Answers } from './answers.ts';

/**
 * Answers as people read them, in the order of the fields: the labels of choices, the names of
 * files, days and instants (in UTC, and saying so), yes and no in the form's language, else in the
 * first of `preferred` that there are words for, else in English.
 *
 * Fields without an answer are left out; so are hidden ones unless `hiddenToo`.
 */
export function answersInWords(
  definition: FormDefinition,
  answers: Answers,
  options: { hiddenToo?: boolean; preferred?: readonly string[] } = {},
): AnswerInWords[] {
  const { settings, fields } = definition;
  const locale = settings.locale ?? options.preferred?.find((tag) => words.has(languageOfTag(tag))) ?? 'en';
  return fields.flatMap((field) => {
    if (field.hidden && options.hiddenToo !== true) return [];
    const answer = Object.hasOwn(answers, field.id) ? answers[field.id] : undefined;
    if (answer === undefined || answer === null || answer === '') return [];
    return [{ fieldId: field.id, label: field.label, text: inWords(field, answer, locale) }];
  });
}

function inWords(field: Field, answer: unknown, locale: string): string {
  if (Array.isArray(answer)) return answer.map((item) => inWords(field, item, locale)).join(', ');
  if (typeof answer === 'boolean') return yesOrNo(answer, locale);
  if (isObject(answer)) return typeof answer.filename === 'string' ? answer.filename : '';
  const text = field.options?.find(({ value }) => value === answer)?.label ?? String(answer);
  const format = timeFormats[field.type]?.(text);
  const time = Date.parse(text);
  if (format === undefined || Number.isNaN(time)) return text;
  return new Intl.DateTimeFormat(locale, { ...format, timeZone: 'UTC' }).format(time);
}

function yesOrNo(answer: boolean, locale: string): string {
  const [yes, no] = words.get(languageOfTag(locale)) ?? ['Yes', 'No'];
  return answer ? yes : no;
}

/** How days and instants are written out. A time of day reads the same to everybody as it is. */
const timeFormats: Partial<Record<Field['type'], (text: string) => Intl.DateTimeFormatOptions>> = {
  date: () => ({ dateStyle: 'long' }),
  datetime: (text) => ({
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    ...(/T\d\d:\d\d:(?!00(?:\.0+)?\D)\d\d/.test(text) && { second: '2-digit' }),
    timeZoneName: 'short',
  }),
};

const words = new Map<string, [yes: string, no: string]>([
  ['en', ['Yes', 'No']],
  ['de', ['Ja', 'Nein']],
  ['fr', ['Oui', 'Non']],
  ['es', ['Sí', 'No']],
  ['pt', ['Sim', 'Não']],
  ['ja', ['はい', 'いいえ']],
  ['zh', ['是', '否']],
  ['ar', ['نعم', 'لا']],
]);

export type AnswerInWords = { fieldId: string; label: string; text: string };
