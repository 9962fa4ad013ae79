import { z } from 'zod';
import { conditionSchema } from '../conditions/schema.ts';

/** The types a field can have. */
export const fieldTypes = [
  'text',
  'textarea',
  'email',
  'url',
  'phone',
  'number',
  'boolean',
  'checkbox',
  'date',
  'time',
  'datetime',
  'select',
  'radio',
  'multi_select',
  'hidden',
  'file',
] as const;

/** The shape of a field id. */
const fieldIdPattern = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

const idError = (issue: { input?: unknown }) =>
  typeof issue.input === 'string' && /^[a-zA-Z]/.test(issue.input)
    ? 'A field id has at most 64 letters, digits, "_" and "-"'
    : 'The field id must start with a letter';

const acceptPattern = /^(?:[a-zA-Z0-9!#$&^_.+-]+\/(?:\*|[a-zA-Z0-9!#$&^_.+-]+)|\.[a-zA-Z0-9_-]+)$/;
const acceptError = 'Expected a media type such as image/* or application/pdf, or an ending such as .pdf';

const optionSchema = z
  .strictObject({
    label: z.string().min(1).max(200).describe('What the human reads.'),
    value: z.string().min(1).max(200).describe('The answer.'),
  })
  .describe('One choice.');

/** The largest file that the service takes: 10 MiB. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;

/** A longer text belongs into a file. */
const MAX_LENGTH = 100_000;

const bound = z.union([z.number(), z.string().max(64)], { error: 'Expected a number or a date as text' });
const count = z.int().min(0).max(MAX_LENGTH);

/** The shape of a field as people send it. Which attribute goes with which type is for `field-rules.ts`. */
export const fieldSchema = z
  .strictObject({
    id: z.string().regex(fieldIdPattern, { error: idError }).describe('Answers are keyed by it.'),
    type: z.enum(fieldTypes).describe('What kind of answer the field takes.'),
    label: z.string().min(1).max(200).exactOptional().describe('Default: the id made human.'),
    description: z.string().max(2000).exactOptional().describe('Help shown to the human.'),
    placeholder: z.string().max(200).exactOptional().describe('An example shown in the empty input.'),
    agentHint: z
      .string()
      .max(2000)
      .exactOptional()
      .describe('Guidance for an agent; never shown to the human.'),
    required: z.boolean().default(false).describe('Whether there must be an answer; of a checkbox: true.'),
    hidden: z.boolean().default(false).describe('Not shown to the human, still part of the answers.'),
    page: z.int().min(1).max(100).default(1).describe('The step of a multi-page form that shows the field.'),
    defaultValue: z
      .union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string()).max(500)])
      .exactOptional()
      .describe('Fills in where no answer is given; a valid answer for the field.'),
    options: z
      .array(optionSchema)
      .min(1)
      .max(500)
      .exactOptional()
      .describe('The choices of `select`, `radio` and `multi_select`; values are unique.'),
    minLength: count.exactOptional().describe('Text: the fewest characters.'),
    maxLength: z
      .int()
      .min(1)
      .max(MAX_LENGTH)
      .exactOptional()
      .describe('Text: the most characters; default 10,000.'),
    pattern: z.string().min(1).max(256).exactOptional().describe('Text: RE2 syntax, over the whole value.'),
    patternMessage: z.string().min(1).max(500).exactOptional().describe('Text: said when `pattern` refuses.'),
    min: bound.exactOptional().describe('The least number, or the earliest date, time or datetime as text.'),
    max: bound.exactOptional().describe('The greatest number, or the latest date, time or datetime as text.'),
    step: z.number().positive().exactOptional().describe('number: the answer is a multiple of it.'),
    minItems: count.exactOptional().describe('multi_select: the fewest choices.'),
    maxItems: z.int().min(1).exactOptional().describe('multi_select: the most choices.'),
    accept: z
      .array(z.string().max(100).regex(acceptPattern, acceptError))
      .min(1)
      .max(50)
      .exactOptional()
      .describe('file: media types (`image/*`, `application/pdf`) or endings (`.pdf`).'),
    maxBytes: z
      .int()
      .min(1)
      .max(MAX_FILE_BYTES)
      .exactOptional()
      .describe('file: the largest size; default 10 MiB.'),
    maxFiles: z
      .int()
      .min(1)
      .max(20)
      .exactOptional()
      .describe('file: how many; default 1. Above 1 the answer is a list.'),
    visibleWhen: conditionSchema
      .exactOptional()
      .describe('When it does not hold, the field is not part of the form.'),
  })
  .meta({ id: 'Field', description: 'One question of a form.' });

/** A field after its shape was checked, with the defaults that do not depend on its type. */
export type ParsedField = z.output<typeof fieldSchema>;

/**
 * A checked field with every default filled in: `maxLength` on texts, `maxBytes` and `maxFiles`
 * on files, `hidden` true on the type `hidden`.
 */
export type Field = z.output<typeof fieldSchema> & { label: string };

export type FieldType = (typeof fieldTypes)[number];
