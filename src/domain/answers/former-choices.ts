import { haveOneMeaning } from '../contracts/field-changes.ts';
import type { FormDefinition } from '../definition/definition.ts';
import type { Field } from '../fields/field.ts';
import { languageOfTag } from '../text/accept-language.ts';

/**
 * A version's definition with the options and rows marked, in the language of `locale`, that the current one offers no
 * more. Of a question that is asked no more, or in another meaning, nothing is marked.
 */
export function markFormerChoices(
  definition: FormDefinition,
  current: FormDefinition,
  locale: string,
): FormDefinition {
  const asked = new Map(current.fields.map((field) => [field.id, field]));
  const words = noLongerOffered.get(languageOfTag(locale)) ?? 'no longer offered';
  const marked = (choices: Choices, offered: Choices) =>
    choices?.map((choice) =>
      offered?.some(({ value }) => value === choice.value) === false
        ? { ...choice, label: `${choice.label} (${words})` }
        : choice,
    );
  const fields = definition.fields.map((field): Field => {
    const now = asked.get(field.id);
    if (now === undefined || !haveOneMeaning(field, now)) return field;
    const [options, rows] = [marked(field.options, now.options), marked(field.rows, now.rows)];
    return { ...field, ...(options && { options }), ...(rows && { rows }) };
  });
  return { ...definition, fields };
}

const noLongerOffered = new Map([
  ['de', 'nicht mehr angeboten'],
  ['fr', 'n’est plus proposé'],
  ['es', 'ya no se ofrece'],
  ['pt', 'já não é oferecido'],
  ['ja', '現在は選択不可'],
  ['zh', '不再提供'],
  ['ar', 'لم يعد متاحًا'],
]);

type Choices = Field['options'];
