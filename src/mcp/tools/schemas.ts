import { z } from 'zod';
import { SubmissionSchema } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { idOf, withFieldIds } from '../../domain/definition/questions.ts';
import { fieldTypes } from '../../domain/fields/field.ts';
import { isObject } from '../../domain/json/json.ts';
import { optional } from '../../domain/json/optional.ts';
import { formLimits, idempotencyKeyLength, pageSizes } from '../../domain/limits/limits.ts';
import { readSentDefinition } from '../../http/body.ts';
import { contentError } from '../../http/errors.ts';
import { readProvenance } from '../../http/reply-parts.ts';
import { from, shape } from '../../http/shape.ts';
import { jsonObject, type ToolContext } from '../tool.ts';

export const formId = z.string().min(1).describe('`form_…`');
export const sessionId = z
  .string()
  .min(1)
  .describe('`sess_…`, a secret: anyone who has it can fill in the session.');
export const submissionId = z.string().min(1).describe('`sub_…`');

export const idempotencyKey = optional(
  z.string().min(idempotencyKeyLength.min).max(idempotencyKeyLength.max),
  'Any text of your own: repeated with it, the same call gives the first result again.',
);

export const language = z
  .string()
  .max(100)
  .default('')
  .describe('Of the questions, as a BCP 47 tag, if the form is translated into it.');

/** Few, since models pay for each word. */
const SMALL_PAGE = 10;

export const limit = z.int().min(1).max(pageSizes.max).default(SMALL_PAGE).describe('How many to return.');
export const cursor = optional(z.string().min(1), 'The next_cursor of the page before.');
export const nextCursor = z.string().nullable().describe('For the next page; null on the last.');

/** The answers of a submission with their origins. */
export const answers = shape(SubmissionSchema, '', {
  submission_id: from('id', z.string().nullable()),
  answers: jsonObject.optional().describe('By field id.'),
  provenance: from(
    readProvenance,
    z
      .record(z.string(), z.looseObject({ by: z.string(), at: z.string(), key_id: z.string().optional() }))
      .optional()
      .describe('By field: human (on the page), mcp_user, api, prefill or default, when, and by which key.'),
  ),
});

const text = { type: 'string' as const };
const properties = { label: text, value: text };
const choice = { type: 'object' as const, required: ['label', 'value'], properties };

/** One of a question's options, as models write it; a text is both. */
export const option = { anyOf: [text, choice] };

/**
 * The definition of a form as an argument: the most that models write. The rest is checked, too, and described in the
 * resource.
 */
export const definition = jsonObject
  .meta({
    required: ['name', 'fields'],
    properties: {
      name: { type: 'string', maxLength: formLimits.name },
      slug: { type: 'string', pattern: '^[A-Za-z0-9._~-]{1,64}$' },
      description: { type: 'string' },
      fields: {
        type: 'array',
        minItems: 1,
        maxItems: 100,
        items: {
          type: 'object',
          required: ['label'],
          properties: {
            id: {
              type: 'string',
              description: 'Default: made of the label.',
              pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$',
            },
            type: { enum: fieldTypes },
            label: { type: 'string' },
            description: { type: 'string', description: 'Help for the person.' },
            agentHint: { type: 'string', description: 'Guidance for agents; never shown to people.' },
            required: { type: 'boolean' },
            options: {
              type: 'array',
              description: 'Of select, radio, multi_select, ranking and matrix (which has rows, too).',
              items: option,
            },
            answeredBy: {
              enum: ['anyone', 'human', 'agent'],
              description: 'human: only on the page, never by a tool. agent: never shown to people.',
            },
          },
        },
      },
      delivery: {
        type: 'object',
        description:
          '{"type": "email"} emails the owner; {"type": "webhook", "url": "https://…"} calls a program.',
        properties: { type: { enum: ['email', 'webhook'] }, url: { type: 'string' } },
        required: ['type'],
      },
      settings: { type: 'object', description: 'Such as successMessage, allowPartial, closesAt, locale.' },
    },
  })
  .describe('The form. Further properties: resource schema://form-definition.');

/** The same without its schema, which a list of tools needs once. */
export const definitionAgain = jsonObject.describe('The form, as create_form takes it.');

/** Gives a definition a slug of its name, emails to its owner, and its fields ids and types, where they are absent. */
function withDefaults(raw: unknown): unknown {
  if (!isObject(raw)) return raw;
  const { name, fields, ...rest } = raw;
  const slug = typeof name === 'string' ? idOf(name, new Set()).replaceAll('_', '-') : undefined;
  return {
    name,
    ...(slug !== undefined && { slug }),
    delivery: { type: 'email' },
    ...rest,
    ...(fields !== undefined && { fields: withFieldIds(fields) }),
  };
}

/** Reads that argument for a new form. Throws a failure with all that is wrong with it. */
export function newDefinitionOf(raw: unknown, context: Parameters<typeof definitionOf>[1]) {
  return definitionOf(withDefaults(raw), context);
}

/** Reads that argument. Throws a failure with all that is wrong with it. */
export function definitionOf(
  raw: unknown,
  { allowPrivateUrls, keyId }: Pick<ToolContext, 'allowPrivateUrls' | 'keyId'>,
) {
  const checked = readSentDefinition(raw, { keyless: keyId === '', allowPrivateUrls });
  if (!checked.ok) throw contentError(checked.violations, raw);
  return checked.value;
}
