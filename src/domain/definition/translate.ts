import { isShown } from '../fields/field.ts';
import { ownValue } from '../json/json.ts';
import { memoize } from '../memoize.ts';
import { languageOfTag } from '../text/accept-language.ts';
import type { Field, FormDefinition } from './definition.ts';
import { type FieldTranslation, type Translation, translatableParts } from './translations.ts';

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

/** Hints for agents may stay as they are: people never see them. */
function missingIn(definition: FormDefinition, translation: Translation): string[] {
  const seen = { ...definition, fields: definition.fields.filter(isShown) };
  return translatableParts(seen, translation).flatMap(({ path, names, own, given, isChoices }) =>
    names
      .filter((name) => ownValue(own, name) !== undefined && ownValue(given, name) === undefined)
      .filter((name) => isChoices || name !== 'agentHint')
      .map((name) => `${path}${name}`),
  );
}

const MAX_MISSING = 100;

/** The language of a translation, and the paths of what it lacks. */
type MissingTranslation = { language: string; paths: string[] };
