import { custom, unrecognized, type Violation } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';
import { formLimits } from '../limits/limits.ts';
import { autoresponseTexts, fieldTexts, MAX_TRANSLATIONS, settingTexts } from './translations.ts';

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
    ...untranslatable(input, translation, ['description'], path),
    ...fieldsProblems(input.fields, translation.fields, `${path}.fields`),
    ...pagesProblems(input.pages, translation.pages, `${path}.pages`),
    ...(isObject(translation.settings)
      ? untranslatable(
          isObject(input.settings) ? input.settings : {},
          translation.settings,
          settingTexts,
          `${path}.settings`,
        )
      : []),
    ...(isObject(translation.autoresponse)
      ? untranslatable(
          autoresponseIn(input.delivery),
          translation.autoresponse,
          autoresponseTexts,
          `${path}.autoresponse`,
        )
      : []),
  ];
}

function autoresponseIn(delivery: unknown): Record<string, unknown> {
  return isObject(delivery) && isObject(delivery.autoresponse) ? delivery.autoresponse : {};
}

function fieldsProblems(fields: unknown, translations: unknown, path: string): Violation[] {
  if (!Array.isArray(fields) || !isObject(translations)) return [];
  const known = new Map(
    fields.filter(isObject).flatMap((field) => (typeof field.id === 'string' ? [[field.id, field]] : [])),
  );
  const unknown = Object.keys(translations).filter((id) => !known.has(id));
  return [
    ...unrecognized(path, unknown, known.keys()),
    ...Object.entries(translations).flatMap(([id, texts]) => {
      const field = known.get(id);
      if (field === undefined || !isObject(texts)) return [];
      return [
        ...untranslatable(field, texts, attributesOfItsOwn, `${path}.${id}`),
        ...choiceProblems(field.options, texts.options, `${path}.${id}.options`),
        ...choiceProblems(field.rows, texts.rows, `${path}.${id}.rows`),
      ];
    }),
  ];
}

/** A field without a label has one that is made of its id. */
const attributesOfItsOwn = fieldTexts.filter((name) => name !== 'label');

function choiceProblems(choices: unknown, labels: unknown, path: string): Violation[] {
  if (!isObject(labels)) return [];
  const values = (Array.isArray(choices) ? choices : []).flatMap((choice) =>
    isObject(choice) && typeof choice.value === 'string' ? [choice.value] : [],
  );
  const known = new Set(values);
  const unknown = Object.keys(labels).filter((value) => !known.has(value));
  return unrecognized(path, unknown, known);
}

function pagesProblems(pages: unknown, translations: unknown, path: string): Violation[] {
  if (!Array.isArray(translations)) return [];
  const known: unknown[] = Array.isArray(pages) ? pages : [];
  const more = translations.length > known.length;
  return [
    ...(more ? [custom(`${path}.${known.length}`, `The form has ${known.length} pages with texts`)] : []),
    ...known.flatMap((page, index) => {
      const texts: unknown = translations[index];
      if (!isObject(page) || !isObject(texts)) return [];
      return untranslatable(page, texts, ['title', 'description'], `${path}.${index}`);
    }),
  ];
}

/** Texts of a translation that translate nothing. */
function untranslatable(
  original: Readonly<Record<string, unknown>>,
  translation: Readonly<Record<string, unknown>>,
  names: readonly string[],
  path: string,
): Violation[] {
  return names
    .filter((name) => translation[name] !== undefined && (original[name] ?? '') === '')
    .map((name) => custom(`${path}.${name}`, `There is no ${name} to translate`));
}
