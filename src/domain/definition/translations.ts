import { z } from 'zod';
import { custom, unrecognized, type Violation } from '../errors/violations.ts';
import { textUpTo } from '../fields/text.ts';
import { isObject, ownValue } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import { formLimits, MAX_PROBLEMS } from '../limits/limits.ts';
import { autoresponseTranslation } from './delivery.ts';

const text = (max: number) => textUpTo(max).exactOptional();

/** The shape of a step's title and description. */
export const pageSchema = z
  .strictObject({
    title: text(formLimits.name).describe('Shown above the fields of the step.'),
    description: text(formLimits.description).describe('Shown below the title.'),
  })
  .meta({ id: 'Page', description: 'A step of a multi-page form.' });

/** The labels of options, or of rows, by their values. */
const labels = z.record(z.string(), textUpTo(formLimits.label)).exactOptional();

const fieldTranslation = z
  .strictObject({
    label: text(formLimits.label),
    description: text(formLimits.description),
    placeholder: text(formLimits.placeholder),
    agentHint: text(formLimits.agentHint),
    patternMessage: text(formLimits.patternMessage),
    minLabel: text(formLimits.endLabel),
    maxLabel: text(formLimits.endLabel),
    options: labels.describe('Labels by the values of the options.'),
    rows: labels.describe('Labels by the values of the rows.'),
  })
  .describe('The texts of a field.');

const translationSchema = z
  .strictObject({
    name: text(formLimits.name),
    description: text(formLimits.description),
    fields: optional(z.record(z.string(), fieldTranslation), 'By the ids of the fields.'),
    pages: optional(z.array(pageSchema).max(formLimits.pages), 'The steps, in their order.'),
    settings: z
      .strictObject({
        submitLabel: text(formLimits.submitLabel),
        successMessage: text(formLimits.successMessage),
      })
      .exactOptional(),
    autoresponse: optional(autoresponseTranslation, 'The email to the person who answered.'),
  })
  .meta({ id: 'Translation', description: 'The texts of a form in another language.' });

/** The shape of a form's texts in further languages. */
export const translationsSchema = z
  .record(z.string(), translationSchema)
  .describe(
    'The texts in further languages, by BCP 47 tag, at most 20; settings.locale is that of the form.',
  );

/** Leaves out the parts of translations that are empty. */
export function normalizeTranslations(translations: Translations): Translations {
  return Object.fromEntries(
    Object.entries(translations).map(([language, translation]) => {
      const { fields = {}, pages = [], settings = {}, autoresponse = {}, ...texts } = translation;
      const named = Object.entries(fields).map(([id, { options = {}, rows = {}, ...field }]) => [
        id,
        { ...field, ...(hasAny(options) && { options }), ...(hasAny(rows) && { rows }) },
      ]);
      return [
        language,
        {
          ...texts,
          ...(named.length > 0 && { fields: Object.fromEntries(named) }),
          ...(pages.length > 0 && { pages }),
          ...(hasAny(settings) && { settings }),
          ...(hasAny(autoresponse) && { autoresponse }),
        },
      ];
    }),
  );
}

/** The most languages beside a form's own. */
const MAX_TRANSLATIONS = 20;

/**
 * What a translation can say of a form, part by part: the names of the texts, what the form has of each, and what the
 * translation has. Both may be as they were sent; what is of the wrong shape counts as absent.
 */
export function translatableParts(form: Sent, translation: Sent): TranslatablePart[] {
  const { fields, pages, settings, delivery } = form;
  return [
    partOf('', ['name', 'description'], form, translation),
    ...listOf(fields)
      .filter(isObject)
      .flatMap(({ id, ...field }) => {
        if (typeof id !== 'string') return [];
        const path = `fields.${id}`;
        const texts = objectOf(ownValue(objectOf(translation.fields), id));
        return [
          partOf(`${path}.`, fieldTexts, field, texts),
          choicesOf(`${path}.options`, field.options, texts.options),
          choicesOf(`${path}.rows`, field.rows, texts.rows),
        ];
      }),
    ...listOf(pages).map((page, index) =>
      partOf(`pages.${index}.`, pageTexts, page, listOf(translation.pages)[index]),
    ),
    partOf('settings.', ['submitLabel', 'successMessage'], settings, translation.settings),
    partOf(
      'autoresponse.',
      ['subject', 'message'],
      objectOf(delivery).autoresponse,
      translation.autoresponse,
    ),
  ];
}

function partOf(path: string, names: readonly string[], own: unknown, given: unknown): TranslatablePart {
  return { path, names, own: objectOf(own), given: objectOf(given), isChoices: false };
}

/** Labels of choices go by their values. */
function choicesOf(path: string, choices: unknown, given: unknown): TranslatablePart {
  const labels = listOf(choices)
    .filter(isObject)
    .map(({ value, label }): [string, unknown] => [String(value), label]);
  const names = labels.map(([value]) => value);
  return {
    path: `${path}.`,
    names,
    own: Object.fromEntries(labels),
    given: objectOf(given),
    isChoices: true,
  };
}

function objectOf(value: unknown): Sent {
  return isObject(value) ? value : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

const pageTexts = ['title', 'description'];

/** The attributes of a field that are texts, but for its options and rows. */
const fieldTexts = [
  'label',
  'description',
  'placeholder',
  'agentHint',
  'patternMessage',
  'minLabel',
  'maxLabel',
];

function hasAny(values: object): boolean {
  return Object.keys(values).length > 0;
}

/** The texts of a form in further languages, by their BCP 47 tags. */
export type Translations = z.output<typeof translationsSchema>;

/** The texts of a form in one language. */
export type Translation = z.output<typeof translationSchema>;

export type FieldTranslation = z.output<typeof fieldTranslation>;

type Sent = Readonly<Record<string, unknown>>;

/** `path` is that of the part in a translation, with a dot behind it; `isChoices`: the names are values of choices. */
type TranslatablePart = {
  path: string;
  names: readonly string[];
  own: Sent;
  given: Sent;
  isChoices: boolean;
};

/**
 * What is wrong between a definition and its translations: languages that are none or that are named twice, and texts
 * that the form does not have. Judges both as they were sent; what is of the wrong shape is left to the schema.
 */
export function translationProblems(input: Record<string, unknown>): Violation[] {
  const { translations, settings } = input;
  if (!isObject(translations)) return [];
  const tags = Object.keys(translations);
  const { locale } = isObject(settings) ? settings : {};
  if (tags.length > MAX_TRANSLATIONS) {
    return [{ path: ROOT, code: 'too_big', message: `At most ${MAX_TRANSLATIONS} languages` }];
  }
  const problems = tags.length > 0 && locale === undefined ? [needsLocale] : [];
  for (const tag of tags) {
    if (problems.length >= MAX_PROBLEMS) break;
    problems.push(...tagProblems(tag, locale, `${ROOT}.${tag}`));
    problems.push(...textProblems(input, translations[tag], `${ROOT}.${tag}`));
  }
  return problems;
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
