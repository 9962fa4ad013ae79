import { custom, wrongType } from '../errors/violations.ts';
import type { Json } from '../json/json.ts';
import { languageOfTag } from '../text/accept-language.ts';
import { type AnswerCheck, type FieldTypeRules, noViolations } from './field-type.ts';

/** True or false. */
export const boolean: FieldTypeRules<object> = {
  attributes: {},
  check: () => checkBoolean,
  answerType: () => 'bool',
  jsonSchema: () => ({ type: 'boolean' }),
  sample: () => true,
  inWords: (answer, _field, locale) => yesOrNo(answer, locale),
  readInput: (values) => readBoolean(values.at(-1) ?? ''),
  control: 'yes_no',
  kind: 'boolean',
  toldBySchema: true,
};

/** A box to tick; where it is required, it must be ticked. */
export const checkbox: FieldTypeRules<{ required: boolean }> = {
  ...boolean,
  check: ({ required }) => (required ? checkTicked : checkBoolean),
  jsonSchema: ({ required }) => ({ type: 'boolean', ...(required && { enum: [true] }) }),
  control: 'checkbox',
  toldBySchema: false,
};

/** Yes or no in the language of a tag, in English if there are no words for it. */
export function yesOrNo(answer: unknown, locale: string): string {
  const [yes, no] = words.get(languageOfTag(locale)) ?? ['Yes', 'No'];
  return answer === true ? yes : no;
}

/** Whether there are words for the language of a tag. */
export function hasWords(tag: string): boolean {
  return words.has(languageOfTag(tag));
}

const checkBoolean: AnswerCheck = (answer, path) =>
  typeof answer === 'boolean' ? noViolations : [wrongType(path, 'boolean', answer)];

const checkTicked: AnswerCheck = (answer, path, match) =>
  answer === false ? [custom(path, 'Must be checked')] : checkBoolean(answer, path, match);

function readBoolean(text: string): Json {
  const word = text.trim().toLowerCase();
  if (['on', 'true', '1', 'yes'].includes(word)) return true;
  if (['off', 'false', '0', 'no'].includes(word)) return false;
  return text;
}

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
