import type { FormDefinition } from '../definition/definition.ts';
import { hasWords } from '../fields/boolean.ts';
import { isShown } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { ownValue } from '../json/json.ts';
import type { Answers } from './answers.ts';

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
  const { settings, fields } = definition;
  const locale = settings.locale ?? options.preferred?.find(hasWords) ?? 'en';
  return fields.flatMap((field) => {
    if (!isShown(field) && options.hiddenToo !== true) return [];
    const answer = ownValue(answers, field.id);
    if (answer === undefined || answer === null || answer === '') return [];
    return [
      { fieldId: field.id, label: field.label, text: fieldRules[field.type].inWords(answer, field, locale) },
    ];
  });
}

export type AnswerInWords = { fieldId: string; label: string; text: string };
