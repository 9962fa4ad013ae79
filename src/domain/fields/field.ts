import { z } from 'zod';
import { conditionSchema } from '../conditions/condition-rules.ts';
import { optional } from '../json/optional.ts';
import { formLimits } from '../limits/limits.ts';
import { fileAttributes } from './file.ts';
import { matrixAttributes } from './matrix.ts';
import { numberAttributes } from './number.ts';
import { ratingAttributes, scaleAttributes } from './points.ts';
import { choiceAttributes, multiSelectAttributes } from './select.ts';
import { textAttributes, textUpTo } from './text.ts';

/** The types that a field can have. What each of them does is in the table of `index.ts`. */
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
  'rating',
  'scale',
  'statement',
  'ranking',
  'matrix',
  'address',
  'signature',
] as const;

/** Who may answer a field. */
const answerers = ['anyone', 'human', 'agent'] as const;

const fieldIdPattern = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

const idError = (issue: { input?: unknown }) =>
  typeof issue.input === 'string' && /^[a-zA-Z]/.test(issue.input)
    ? 'A field id has at most 64 letters, digits, "_" and "-"'
    : 'The field id must start with a letter';

/** The attributes that fields of every type may have. */
const commonAttributes = {
  id: z.string().regex(fieldIdPattern, { error: idError }).describe('Answers are keyed by it.'),
  type: z.enum(fieldTypes).describe('What kind of answer the field takes.'),
  label: optional(textUpTo(formLimits.label), 'Default: the id made human.'),
  description: optional(z.string().max(formLimits.description), 'Help shown to the human.'),
  placeholder: optional(z.string().max(formLimits.placeholder), 'An example shown in the empty input.'),
  agentHint: optional(
    z.string().max(formLimits.agentHint),
    'Guidance for an agent; never shown to the human.',
  ),
  required: z.boolean().default(false).describe('Whether there must be an answer; of a checkbox: true.'),
  hidden: z.boolean().default(false).describe('Not shown to the human, still part of the answers.'),
  answeredBy: z
    .enum(answerers)
    .default('anyone')
    .describe(
      '`human`: answers are taken from the hosted page alone, so that no API call, HTML form or prefill can give them; ' +
        'anyone with the link can. `agent`: only by API or prefill, never shown on the page.',
    ),
  personal: optional(
    z.boolean(),
    'Whether the answer is personal or secret: MCP clients send people to the page for it, and exports and the audit ' +
      'log mark it.',
  ),
  page: z
    .int()
    .min(1)
    .max(formLimits.pages)
    .default(1)
    .describe('The step of a multi-page form that shows the field.'),
  defaultValue: optional(
    z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string()).max(formLimits.options)]),
    'Fills in where no answer is given; a valid answer for the field.',
  ),
};

/** The attributes that fields of some types may have; the rules of each type say which. */
export const typeAttributes = {
  ...choiceAttributes,
  ...textAttributes,
  ...numberAttributes,
  ...multiSelectAttributes,
  ...fileAttributes,
  ...ratingAttributes,
  ...scaleAttributes,
  ...matrixAttributes,
};

/** The shape of a field as people send it, whatever its type. */
export const fieldSchema = z
  .strictObject({
    ...commonAttributes,
    ...typeAttributes,
    visibleWhen: optional(conditionSchema, 'When it does not hold, the field is not part of the form.'),
  })
  .meta({ id: 'Field', description: 'One question of a form.' });

/** A field after its shape was checked, with the defaults that do not depend on its type. */
export type ParsedField = z.output<typeof fieldSchema>;

/**
 * A checked field with every default filled in: `maxLength` on texts, `maxBytes` and `maxFiles`
 * on files, `hidden` true on the type `hidden`.
 */
export type Field = ParsedField & { label: string };

/** Whether a field asks for an answer; a statement doesn't. */
export function takesAnswer({ type }: Pick<Field, 'type'>): boolean {
  return type !== 'statement';
}

/** Whether people see a field on the hosted page. */
export function isShown({ hidden, answeredBy }: Pick<Field, 'hidden' | 'answeredBy'>): boolean {
  return !hidden && answeredBy !== 'agent';
}

export type FieldType = (typeof fieldTypes)[number];
