import type { Request, Response } from 'express';
import { z } from 'zod';
import { AgentSchemaSchema } from '../../../gen/headlessforms/v1/agent_schema_pb.js';
import {
  CreatorType,
  type Form,
  FormSchema,
  FormShareSchema,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { definitionFromMessage } from '../../domain/definition/definition-proto.ts';
import { violationsOf } from '../../domain/errors/violations.ts';
import { isObject } from '../../domain/json/json.ts';
import { optional } from '../../domain/json/optional.ts';
import { readSentDefinition } from '../../http/body.ts';
import { jsonObject } from '../../http/schemas.ts';
import { from, present, shape, timeReply } from '../../http/shape.ts';
import { type Checked, comesWithoutKey } from '../route.ts';
import type { RouteContext } from '../route-context.ts';

export const formId = z.string().meta({ examples: ['form_01jd3kvz8nf9t8x1v0c9m2q4ra'] });

/** What each description of a form begins with. */
export const formHead = {
  id: formId,
  name: z.string(),
  slug: z.string(),
  status: z.enum(['draft', 'published', 'archived']),
};

export const webhookSecret = optional(
  z.string(),
  'The signing secret of the form’s webhook, if the service made it. Shown only here.',
);

export const emailBody = z
  .strictObject({
    email: z.string().meta({ format: 'email' }).describe('The owner’s email address.'),
  })
  .meta({ id: 'EmailInput' });

const formFields = {
  ...formHead,
  current_version_id: z.string().nullable(),
  created_by: from(
    ({ createdBy }: Form) => creatorOf(createdBy),
    z.string().describe('`public`, or the id of a key.'),
  ),
  owner_email: z.string().nullable(),
  pending_owner_email: z.string().nullable().describe('An address that becomes the owner once it confirms.'),
  key: z.string().nullable().describe('What names the form in files.'),
  managed_by: z.string().nullable().describe('Who keeps its definition.'),
  created_at: timeReply,
  activated_at: timeReply.nullable(),
  archived_at: timeReply.nullable(),
  closed_at: timeReply.nullable(),
};

/** A form in lists. */
export const listedForm = shape(FormSchema, 'ListedForm', formFields);

/** How people and websites reach a published form. */
const share = shape(FormShareSchema, '', {
  page_url: z.string().nullable().describe('The form’s public page; null if it has none.'),
  submissions_url: z.string().describe('Where answers are posted: as JSON, or by an HTML form.'),
  html: from(
    'html_snippet',
    z
      .string()
      .nullable()
      .describe('An HTML form for a website; null if such a form can’t ask for an answer that is required.'),
  ),
  fetch: from('fetch_snippet', z.string().describe('JavaScript that posts made-up answers.')),
  embed: from(
    'embed_snippet',
    z
      .string()
      .nullable()
      .describe('HTML that shows the page within a website, which the form’s embedOrigins must name.'),
  ),
  qr_url: z
    .string()
    .nullable()
    .describe('Where a QR code of the page’s address is, as SVG; null if it has no page.'),
  qr_svg: z
    .string()
    .nullable()
    .describe('The QR code itself; null unless reading the form asks for it by `qr_svg=true`.'),
  warnings: optional(z.array(z.string()), 'Settings of the form that do not work with these snippets.'),
});

/** How to share a form; absent unless it is published. */
export const sharedForm = from(
  ({ share: there }: Form) => there && share.of(there),
  share.schema
    .meta({ id: 'Share', description: 'How people and websites reach a published form.' })
    .exactOptional(),
);

/** What the translations of a form lack; absent where they lack nothing. */
export const missingTranslationsReply = optional(
  z.array(
    z.object({
      language: z.string().describe('A BCP 47 tag.'),
      paths: z.array(z.string()).describe('Such as `fields.email.label`; at most 100.'),
    }),
  ),
  'What the translations lack, which people read in the form’s own language.',
);

/** A form with its definition. */
export const form = shape(FormSchema, 'Form', {
  ...formFields,
  definition: from(({ definition }) => definitionReply(definition), definitionSchema),
  share: sharedForm,
  missing_translations: from((there) => missingOf(there).missing_translations, missingTranslationsReply),
});

/** The part of a reply that says what translations lack; empty if they lack nothing. */
export function missingOf({ missingTranslations: missing }: Pick<Form, 'missingTranslations'>): {
  missing_translations?: z.input<typeof missingTranslationsReply>;
} {
  if (missing.length === 0) return {};
  return { missing_translations: missing.map(({ language, paths }) => ({ language, paths })) };
}

function creatorOf(creator: Form['createdBy']): string {
  if (creator?.type === CreatorType.KEY) return creator.keyId;
  return creator?.type === CreatorType.SYSTEM ? 'system' : 'public';
}

/** A definition as people write it. */
export function definitionReply(message: Form['definition']): z.input<typeof definitionSchema> {
  // The service has checked it, so it has the shape of the schema.
  return definitionFromMessage(present(message)) as z.input<typeof definitionSchema>;
}

/** What a model needs to fill a form, as replies have it. */
export const agentSchemaReply = shape(AgentSchemaSchema, 'AgentSchema', {
  form: from(
    ({ name, description }) => ({ name, ...(description !== '' && { description }) }),
    z.object({ name: z.string(), description: z.string().exactOptional() }),
  ),
  questions: from(
    ({ questions }) => questions.map(({ text }) => text),
    z
      .array(z.string())
      .describe(
        'In the order they are asked; of a session, those without an answer. Each begins with the id of its field: ' +
          '`reason (required): Why does it come back? Options: broken = It does not work, other`.',
      ),
  ),
  json_schema: jsonObject.describe('JSON Schema 2020-12 of the answers to them that a call may give.'),
  example: jsonObject.describe('Made-up answers of that shape, the least that must be given.'),
});

/** The header by which a caller chooses among the languages of a form. */
export const preferredLanguage = {
  'Accept-Language': optional(
    z.string(),
    'The languages that are preferred; the texts are in the first that the form has, else in its own.',
  ),
};

/** The value of that header, on which the reply then depends. */
export function preferredLanguageOf({ headers }: Request, response: Response): string {
  response.vary('accept-language');
  return headers['accept-language'] ?? '';
}

/** Reads a body that is a form definition. `keptUrl`: a webhook may leave its URL out, which the form keeps. */
export function checkedDefinition(kept: { keptUrl?: string } = {}) {
  return (raw: unknown, { request, options: { allowPrivateUrls } }: RouteContext) => {
    const read = readSentDefinition(raw, { keyless: comesWithoutKey(request), allowPrivateUrls, ...kept });
    return read.ok ? { ok: true as const, value: { definition: read.value } } : read;
  };
}

/** The parts of a route whose body is a definition with further properties beside it. */
export function definitionBeside(shape: z.ZodRawShape, kept: { keptUrl?: string } = {}) {
  const schema = z.strictObject(shape);
  const checkRest = checkedDefinition(kept);
  const check = (raw: unknown, context: RouteContext): Checked<object> => {
    const entries = isObject(raw) ? Object.entries(raw) : [];
    const given = Object.fromEntries(entries.filter(([name]) => Object.hasOwn(shape, name)));
    const rest = Object.fromEntries(entries.filter(([name]) => !Object.hasOwn(shape, name)));
    const beside = schema.safeParse(given);
    const definition = checkRest(isObject(raw) ? rest : raw, context);
    if (beside.success && definition.ok) {
      return { ok: true, value: { ...definition.value, ...beside.data } };
    }
    const violations = [
      ...(beside.success ? [] : violationsOf(beside.error, given)),
      ...(definition.ok ? [] : definition.violations),
    ];
    return { ok: false, violations };
  };
  return { shape: definitionSchema.extend(shape), check };
}
