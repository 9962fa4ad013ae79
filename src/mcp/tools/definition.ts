import { idOf, withFieldIds } from '../../domain/definition/questions.ts';
import { fieldTypes } from '../../domain/fields/field.ts';
import { isObject } from '../../domain/json/json.ts';
import { readDefinition } from '../../http/body.ts';
import { contentError } from '../../http/errors.ts';
import { jsonObject, type ToolContext } from '../tool.ts';

/**
 * The definition of a form as an argument: the most that models write. The rest is checked, too, and described in the
 * resource.
 */
export const definition = jsonObject
  .meta({
    required: ['name', 'fields'],
    properties: {
      name: { type: 'string', maxLength: 200 },
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
              items: {
                type: 'object',
                required: ['label', 'value'],
                properties: { label: { type: 'string' }, value: { type: 'string' } },
              },
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
          '{"type": "email"} mails the owner; {"type": "webhook", "url": "https://…"} calls a program.',
        properties: { type: { enum: ['email', 'webhook'] }, url: { type: 'string' } },
        required: ['type'],
      },
      settings: { type: 'object', description: 'Such as successMessage, allowPartial, closesAt, locale.' },
    },
  })
  .describe('The form. Further properties: resource schema://form-definition.');

/** The same without its schema, which a list of tools needs once. */
export const definitionAgain = jsonObject.describe('The form, as create_form takes it.');

/** Gives a definition a slug of its name, mails to its owner, and its fields ids and types, where they are absent. */
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
  const checked = readDefinition(raw, { keyless: keyId === '', allowPrivateUrls });
  if (!checked.ok) throw contentError(checked.violations, raw);
  return checked.value;
}
