import type { Answers } from './answers.ts';
import type { Field, FormDefinition } from './definition.ts';
import { isObject } from './json.ts';

/**
 * Answers as people read them, in the order of the fields: the labels of choices, the names of
 * files, yes and no in the form's language. Fields without an answer are left out; so are hidden
 * ones unless `hiddenToo`.
 */
export function answersInWords(
  definition: FormDefinition,
  answers: Answers,
  options: { hiddenToo?: boolean } = {},
): AnswerInWords[] {
  return definition.fields.flatMap((field) => {
    if (field.hidden && options.hiddenToo !== true) return [];
    const answer = Object.hasOwn(answers, field.id) ? answers[field.id] : undefined;
    if (answer === undefined || answer === null || answer === '') return [];
    const text = inWords(field, answer, definition.settings.locale);
    return [{ fieldId: field.id, label: field.label, text }];
  });
}

function inWords(field: Field, answer: unknown, locale: string): string {
  if (Array.isArray(answer)) return answer.map((item) => inWords(field, item, locale)).join(', ');
  if (typeof answer === 'boolean') return yesOrNo(answer, locale);
  if (isObject(answer)) return String(answer.filename ?? answer.upload_id ?? '');
  return field.options?.find(({ value }) => value === answer)?.label ?? String(answer);
}

function yesOrNo(answer: boolean, locale: string): string {
  const [yes, no] = words.get(locale.split('-', 1)[0]?.toLowerCase() ?? '') ?? ['Yes', 'No'];
  return answer ? yes : no;
}

const words = new Map<string, [yes: string, no: string]>([
  ['de', ['Ja', 'Nein']],
  ['fr', ['Oui', 'Non']],
  ['es', ['Sí', 'No']],
  ['pt', ['Sim', 'Não']],
  ['ja', ['はい', 'いいえ']],
  ['zh', ['是', '否']],
  ['ar', ['نعم', 'لا']],
]);

export type AnswerInWords = { fieldId: string; label: string; text: string };
