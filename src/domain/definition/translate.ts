import { isShown } from '../fields/field.ts';
import { ownValue } from '../json/json.ts';
import { memoize } from '../memoize.ts';
import { languageOfTag } from '../text/accept-language.ts';
import type { Field, FormDefinition } from './definition.ts';
import {
  autoresponseTexts,
  type FieldTranslation,
  fieldTexts,
  settingTexts,
  type Translation,
} from './translations.ts';

/** The languages of a form's page, its own first; none if it is not translated. */
export function languagesOf({ settings: { locale }, translations }: FormDefinition): string[] {
  return translations === undefined || locale === undefined ? [] : [locale, ...Object.keys(translations)];
}

/**
 * A definition in the first of the preferred languages that it has; in its own if it has none of them. `preferred` are
 * BCP 47 tags. What is not translated stays in the form's own language. Ids, values and rules are the same in all.
 */
export function translate(definition: FormDefinition, preferred: readonly string[]): FormDefinition {
  const chosen = languageFor(definition, preferred);
  const translation = chosen === undefined ? undefined : definition.translations?.[chosen];
  if (chosen === undefined || translation === undefined) return definition;
  const known = translated(definition);
  const made = known.get(chosen) ?? translateInto(definition, chosen, translation);
  known.set(chosen, made);
  return made;
}

/** The first of the preferred languages that a translated form has, else its own; undefined if it is not translated. */
export function languageFor(definition: FormDefinition, preferred: readonly string[]): string | undefined {
  const languages = languagesOf(definition);
  return preferred.map((tag) => bestOf(languages, tag)).find((tag) => tag !== undefined) ?? languages[0];
}

/** The language itself, else a wider one (`de` for `de-AT`), else another of the same (`de-CH`). */
function bestOf(languages: readonly string[], tag: string): string | undefined {
  const wanted = tag.toLowerCase();
  const parts = wanted.split('-');
  const wider = parts.map((_, index) => parts.slice(0, parts.length - index).join('-'));
  const exact = wider.flatMap((each) => languages.filter((language) => language.toLowerCase() === each));
  return exact[0] ?? languages.find((language) => languageOfTag(language) === languageOfTag(tag));
}

/** A definition in each language that was asked for. */
const translated = memoize((_definition: FormDefinition) => new Map<string, FormDefinition>());

function translateInto(
  original: FormDefinition,
  locale: string,
  { fields = {}, pages = [], settings = {}, autoresponse = {}, ...texts }: Translation,
): FormDefinition {
  const { translations: _, ...definition } = original;
  const { delivery } = definition;
  return {
    ...definition,
    ...texts,
    fields: definition.fields.map((field) => translateField(field, ownValue(fields, field.id) ?? {})),
    settings: { ...definition.settings, ...settings, locale },
    ...(delivery.type === 'email' &&
      delivery.autoresponse !== undefined && {
        delivery: { ...delivery, autoresponse: { ...delivery.autoresponse, ...autoresponse } },
      }),
    ...(definition.pages !== undefined && {
      pages: definition.pages.map((page, index) => ({ ...page, ...pages[index] })),
    }),
  };
}

function translateField(field: Field, { options, rows, ...texts }: FieldTranslation): Field {
  const labelled = (choices: NonNullable<Field['options']>, labels: Record<string, string> = {}) =>
    choices.map(({ value, label }) => ({ label: ownValue(labels, value) ?? label, value }));
  return {
    ...field,
    ...texts,
    ...(field.options !== undefined && { options: labelled(field.options, options) }),
    ...(field.rows !== undefined && { rows: labelled(field.rows, rows) }),
  };
}

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
