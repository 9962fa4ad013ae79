import { z } from 'zod';
import { textUpTo } from '../fields/text.ts';
import { formLimits } from '../limits/limits.ts';
import { autoresponseTranslation } from './delivery.ts';

const text = (max: number) => textUpTo(max).exactOptional();

/** The shape of a step's title and description. */
export const pageSchema = z
  .strictObject({
    title: text(formLimits.label).describe('Shown above the fields of the step.'),
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
    fields: z.record(z.string(), fieldTranslation).exactOptional().describe('By the ids of the fields.'),
    pages: z.array(pageSchema).max(formLimits.pages).exactOptional().describe('The steps, in their order.'),
    settings: z
      .strictObject({
        submitLabel: text(formLimits.submitLabel),
        successMessage: text(formLimits.successMessage),
      })
      .exactOptional(),
    autoresponse: autoresponseTranslation.exactOptional().describe('The mail to the person who answered.'),
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
export const MAX_TRANSLATIONS = 20;

/** The attributes of a field that are texts, but for its options and rows. */
export const fieldTexts = [
  'label',
  'description',
  'placeholder',
  'agentHint',
  'patternMessage',
  'minLabel',
  'maxLabel',
] as const;

export const settingTexts = ['submitLabel', 'successMessage'] as const;

export const autoresponseTexts = ['subject', 'message'] as const;

function hasAny(values: object): boolean {
  return Object.keys(values).length > 0;
}

/** The texts of a form in further languages, by their BCP 47 tags. */
export type Translations = z.output<typeof translationsSchema>;

/** The texts of a form in one language. */
export type Translation = z.output<typeof translationSchema>;

export type FieldTranslation = z.output<typeof fieldTranslation>;
