import { custom, unrecognized, type Violation } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';
import { formLimits } from '../limits/limits.ts';
import { MAX_TRANSLATIONS, translatableParts } from './translations.ts';

/**
 * What is wrong between a definition and its translations: languages that are none or that are named twice, and texts
 * that the form does not have. Judges both as they were sent; what is of the wrong shape is left to the schema.
 */
export function translationProblems(input: Record<string, unknown>): Violation[] {
  const { translations, settings } = input;
  if (!isObject(translations)) return [];
  const tags = Object.keys(translations);
  const { locale } = isObject(settings) ? settings : {};
  return [
    ...(tags.length > 0 && locale === undefined ? [needsLocale] : []),
    ...(tags.length > MAX_TRANSLATIONS
      ? [{ path: ROOT, code: 'too_big' as const, message: `At most ${MAX_TRANSLATIONS} languages` }]
      : []),
    ...tags.flatMap((tag) => [
      ...tagProblems(tag, locale, `${ROOT}.${tag}`),
      ...textProblems(input, translations[tag], `${ROOT}.${tag}`),
    ]),
  ];
}

const ROOT = 'translations';

const needsLocale: Violation = {
  path: 'settings.locale',
  code: 'invalid_type',
  message: 'Required: the language of the form itself, beside its translations',
};

function tagProblems(tag: string, locale: unknown, path: string): Violation[] {
  const canonical = canonicalTag(tag);
  if (canonical === undefined || tag.length > formLimits.languageTag) {
    return [custom(path, 'Expected a language tag (BCP 47) such as en or de-CH')];
  }
  // Two spellings of one tag would be two translations into one language.
  if (canonical !== tag) return [custom(path, `Write the language tag as ${canonical}`)];
  const own = typeof locale === 'string' ? canonicalTag(locale) : undefined;
  return own === tag ? [custom(path, 'This is the language of the form itself: settings.locale')] : [];
}

function canonicalTag(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}

function textProblems(input: Record<string, unknown>, translation: unknown, path: string): Violation[] {
  if (!isObject(translation)) return [];
  return [
    ...unknownFields(input.fields, translation.fields, `${path}.fields`),
    ...unknownPages(input.pages, translation.pages, `${path}.pages`),
    ...translatableParts(input, translation).flatMap(({ path: place, names, own, given, isChoices }) => {
      if (isChoices) return unknownKeys(`${path}.${place.slice(0, -1)}`, given, names);
      return names
        .filter((name) => !alwaysThere.has(name) && given[name] !== undefined && (own[name] ?? '') === '')
        .map((name) => custom(`${path}.${place}${name}`, `There is no ${name} to translate`));
    }),
  ];
}

/** A form without a name is refused for that; a field without a label has one that is made of its id. */
const alwaysThere = new Set(['name', 'label']);

function unknownFields(fields: unknown, translations: unknown, path: string): Violation[] {
  if (!Array.isArray(fields) || !isObject(translations)) return [];
  const ids = fields.flatMap((field) => (isObject(field) && typeof field.id === 'string' ? field.id : []));
  return unknownKeys(path, translations, ids);
}

function unknownPages(pages: unknown, translations: unknown, path: string): Violation[] {
  const count = Array.isArray(pages) ? pages.length : 0;
  if (!Array.isArray(translations) || translations.length <= count) return [];
  return [custom(`${path}.${count}`, `The form has ${count} pages with texts`)];
}

function unknownKeys(path: string, given: object, known: readonly string[]): Violation[] {
  const names = new Set(known);
  return unrecognized(
    path,
    Object.keys(given).filter((key) => !names.has(key)),
    names,
  );
}
