import { isShown } from '../fields/field.ts';
import type { Field, FormDefinition } from './definition.ts';
import {
  autoresponseTexts,
  type FieldTranslation,
  fieldTexts,
  ownValue,
  settingTexts,
  type Translation,
} from './translations.ts';

/** What people see of a form and a translation lacks, as paths of its JSON, at most 100 for each language. */
export function missingTranslations(definition: FormDefinition): MissingTranslation[] {
  return Object.entries(definition.translations ?? {}).flatMap(([language, translation]) => {
    const paths = missingIn(definition, translation).slice(0, MAX_MISSING);
    return paths.length === 0 ? [] : [{ language, paths }];
  });
}

function missingIn(definition: FormDefinition, translation: Translation): string[] {
  const { pages = [], settings, delivery } = definition;
  const { autoresponse = {} } = delivery.type === 'email' ? delivery : {};
  return [
    ...lacking(definition, translation, ['name', 'description'], ''),
    ...definition.fields.filter(isShown).flatMap((field) => {
      const of: FieldTranslation = ownValue(translation.fields ?? {}, field.id) ?? {};
      const path = `fields.${field.id}`;
      return [
        ...lacking(field, of, seenTexts, `${path}.`),
        ...unlabelled(field.options, of.options, `${path}.options`),
        ...unlabelled(field.rows, of.rows, `${path}.rows`),
      ];
    }),
    ...pages.flatMap((page, index) =>
      lacking(page, translation.pages?.[index] ?? {}, ['title', 'description'], `pages.${index}.`),
    ),
    ...lacking(settings, translation.settings ?? {}, settingTexts, 'settings.'),
    ...lacking(autoresponse, translation.autoresponse ?? {}, autoresponseTexts, 'autoresponse.'),
  ];
}

/** Hints for agents may stay as they are: people never see them. */
const seenTexts = fieldTexts.filter((name) => name !== 'agentHint');

function lacking<Name extends string>(
  original: { [name in Name]?: unknown },
  translation: { [name in Name]?: unknown },
  names: readonly Name[],
  path: string,
): string[] {
  return names
    .filter((name) => original[name] !== undefined && translation[name] === undefined)
    .map((name) => `${path}${name}`);
}

function unlabelled(choices: Field['options'] = [], labels: Record<string, string> = {}, path: string) {
  return choices.flatMap(({ value }) => (Object.hasOwn(labels, value) ? [] : [`${path}.${value}`]));
}

const MAX_MISSING = 100;

/** The language of a translation, and the paths of what it lacks. */
export type MissingTranslation = { language: string; paths: string[] };
