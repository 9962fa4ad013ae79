import { z } from 'zod';
import { type Form, FormStatus, type GetAgentSchemaResponse } from '../../../gen/forms/v1/forms_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { definitionFromMessage } from '../../domain/definition/definition-message.ts';
import { settingsSchema } from '../../domain/definition/settings.ts';
import { fieldSchema } from '../../domain/fields/field.ts';
import { jsonObject, nextCursor, present, textOrNull, timeOf, timeOrNull, timeReply } from './common.ts';

const idReply = z.string().meta({ examples: ['form_01jd3kvz8nf9t8x1v0c9m2q4ra'] });
const status = z.enum(['draft', 'published', 'archived']);
const webhookSecret = z
  .string()
  .exactOptional()
  .describe('The signing secret of the form’s webhook, if the service made it. Shown only here.');

export const createdReply = z.object({
  form: z.object({
    id: idReply,
    name: z.string(),
    slug: z.string(),
    status,
    activate_url: z.string().describe('Relative path; the token in it works once, for 7 days.'),
  }),
});

export const activatedReply = z.object({
  form: z.object({ id: idReply, name: z.string(), slug: z.string(), status, current_version_id: z.string() }),
  message: z.string(),
  webhook_secret: webhookSecret,
});

export const validatedReply = z.object({ ok: z.literal(true), form: definitionSchema });

const formFields = {
  id: idReply,
  name: z.string(),
  slug: z.string(),
  status,
  current_version_id: z.string().nullable(),
  created_by: z.string().describe('`public`, or the id of a key.'),
  owner_email: z.string().nullable(),
  created_at: timeReply,
  activated_at: timeReply.nullable(),
  archived_at: timeReply.nullable(),
};

const listedForm = z.object(formFields).meta({ id: 'ListedForm' });
const form = z.object({ ...formFields, definition: definitionSchema }).meta({ id: 'Form' });

export const formReply = z.object({ form });
export const listedFormReply = z.object({ form: listedForm });
export const formsReply = z.object({ forms: z.array(listedForm), next_cursor: nextCursor });

export const versionReply = z.object({
  form,
  version: z.object({
    id: z.string(),
    number: z.int(),
    checksum: z.string().describe('SHA-256 of the definition’s canonical JSON, in hex.'),
    created_at: timeReply,
  }),
  webhook_secret: webhookSecret,
});

export const agentSchemaReply = z.object({
  form: z.object({
    id: idReply,
    name: z.string(),
    slug: z.string(),
    description: z.string().nullable(),
    version_id: z.string().nullable(),
  }),
  fields: z.array(fieldSchema),
  settings: settingsSchema,
  json_schema: jsonObject.describe('JSON Schema 2020-12 of the answers object.'),
  submit: z.object({ method: z.literal('POST'), url: z.string() }),
});

export const emailBody = z
  .strictObject({ email: z.string().describe('The address that is to own the form.') })
  .meta({ id: 'EmailInput' });

/** What activation needs beside its body. */
export const tokenQuery = z.object({
  token: z.string().min(1).describe('From `activate_url`; it works once.'),
});

/** A form as a list has it. */
export function listedFormOf(message: Form): z.input<typeof listedForm> {
  return {
    id: message.id,
    name: message.name,
    slug: message.slug,
    status: statusOf(message.status),
    current_version_id: textOrNull(message.currentVersionId),
    created_by: message.createdBy,
    owner_email: textOrNull(message.ownerEmail),
    created_at: timeOf(message.createTime),
    activated_at: timeOrNull(message.activateTime),
    archived_at: timeOrNull(message.archiveTime),
  };
}

/** A form with its definition. */
export function formOf(message: Form | undefined): z.input<typeof form> {
  const there = present(message);
  return { ...listedFormOf(there), definition: definitionOf(there.definition) };
}

/** What a form asks, for agents and renderers. */
export function agentSchemaOf(
  { form: message, jsonSchema }: GetAgentSchemaResponse,
  baseUrl: string,
): z.input<typeof agentSchemaReply> {
  const { id, name, slug, currentVersionId, definition } = present(message);
  const { description = null, fields, settings = {} } = definitionOf(definition);
  return {
    form: { id, name, slug, description, version_id: textOrNull(currentVersionId) },
    fields,
    settings,
    json_schema: jsonSchema ?? {},
    submit: { method: 'POST', url: `${baseUrl}/api/forms/${id}/submissions` },
  };
}

/** A definition as people write it. */
export function definitionOf(message: Form['definition']): z.input<typeof definitionSchema> {
  // The service has checked it: what comes back is of the schema's shape.
  return definitionFromMessage(present(message)) as z.input<typeof definitionSchema>;
}

/** The word for a form's status. */
export function statusOf(value: FormStatus): z.input<typeof status> {
  if (value === FormStatus.PUBLISHED) return 'published';
  return value === FormStatus.ARCHIVED ? 'archived' : 'draft';
}
