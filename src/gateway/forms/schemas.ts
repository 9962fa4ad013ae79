import { z } from 'zod';
import { CreatorType, type Form, FormStatus } from '../../../gen/forms/v1/forms_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { definitionFromMessage } from '../../domain/definition/definition-message.ts';
import { present, textOrNull, timeOf, timeOrNull } from '../../http/values.ts';
import { timeReply } from '../schemas.ts';

export const formId = z.string().meta({ examples: ['form_01jd3kvz8nf9t8x1v0c9m2q4ra'] });
export const formStatus = z.enum(['draft', 'published', 'archived']);
export const webhookSecret = z
  .string()
  .exactOptional()
  .describe('The signing secret of the form’s webhook, if the service made it. Shown only here.');

export const emailBody = z
  .strictObject({
    email: z.string().meta({ format: 'email' }).describe('The address that is to own the form.'),
  })
  .meta({ id: 'EmailInput' });

const formFields = {
  id: formId,
  name: z.string(),
  slug: z.string(),
  status: formStatus,
  current_version_id: z.string().nullable(),
  created_by: z.string().describe('`public`, or the id of a key.'),
  owner_email: z.string().nullable(),
  created_at: timeReply,
  activated_at: timeReply.nullable(),
  archived_at: timeReply.nullable(),
  closed_at: timeReply.nullable(),
};

/** A form in lists. */
export const listedForm = z.object(formFields).meta({ id: 'ListedForm' });

/** How people and websites reach a published form. */
export const share = z
  .object({
    page_url: z.string().nullable().describe('The form’s own page, for everybody; null if it has none.'),
    submissions_url: z.string().describe('Where answers are posted: as JSON, or by an HTML form.'),
    html: z
      .string()
      .nullable()
      .describe('An HTML form for a website; null if such a form can’t ask for an answer that is required.'),
    fetch: z.string().describe('JavaScript that posts made-up answers.'),
    embed: z
      .string()
      .nullable()
      .describe('HTML that shows the page within a website, which the form’s embedOrigins must name.'),
    qr_svg: z.string().nullable().describe('A QR code of the page’s address, as SVG.'),
  })
  .meta({ id: 'Share', description: 'How people and websites reach a published form.' });

/** What the translations of a form lack; absent where they lack nothing. */
export const missingTranslations = z
  .array(
    z.object({
      language: z.string().describe('A BCP 47 tag.'),
      paths: z.array(z.string()).describe('Such as `fields.email.label`; at most 100.'),
    }),
  )
  .exactOptional()
  .describe('What the translations lack, which people read in the form’s own language.');

/** A form with its definition. */
export const form = z
  .object({
    ...formFields,
    definition: definitionSchema,
    share: share.exactOptional(),
    missing_translations: missingTranslations,
  })
  .meta({ id: 'Form' });

/** A form as lists show it. */
export function listedFormOf(message: Form): z.input<typeof listedForm> {
  return {
    id: message.id,
    name: message.name,
    slug: message.slug,
    status: statusOf(message.status),
    current_version_id: textOrNull(message.currentVersionId),
    created_by: creatorOf(message.createdBy),
    owner_email: textOrNull(message.ownerEmail),
    created_at: timeOf(message.createTime),
    activated_at: timeOrNull(message.activateTime),
    archived_at: timeOrNull(message.archiveTime),
    closed_at: timeOrNull(message.closeTime),
  };
}

function creatorOf(creator: Form['createdBy']): string {
  if (creator?.type === CreatorType.KEY) return creator.keyId;
  return creator?.type === CreatorType.SYSTEM ? 'system' : 'public';
}

/** A form as replies show it, with its definition. */
export function formOf(message: Form | undefined): z.input<typeof form> {
  const there = present(message);
  return {
    ...listedFormOf(there),
    definition: definitionOf(there.definition),
    ...sharedOf(there),
    ...missingOf(there),
  };
}

/** The part of a reply that says what translations lack; empty if they lack nothing. */
export function missingOf({ missingTranslations: missing }: Pick<Form, 'missingTranslations'>): {
  missing_translations?: z.input<typeof missingTranslations>;
} {
  if (missing.length === 0) return {};
  return { missing_translations: missing.map(({ language, paths }) => ({ language, paths })) };
}

/** The part of a reply that says how to share a form; empty unless it is published. */
export function sharedOf({ share: there }: Form): { share?: z.input<typeof share> } {
  if (there === undefined) return {};
  return {
    share: {
      page_url: textOrNull(there.pageUrl),
      submissions_url: there.submissionsUrl,
      html: textOrNull(there.htmlSnippet),
      fetch: there.fetchSnippet,
      embed: textOrNull(there.embedSnippet),
      qr_svg: textOrNull(there.qrSvg),
    },
  };
}

/** A definition as people write it. */
export function definitionOf(message: Form['definition']): z.input<typeof definitionSchema> {
  // The service has checked it, so it has the shape of the schema.
  return definitionFromMessage(present(message)) as z.input<typeof definitionSchema>;
}

/** The word for a form's status. */
export function statusOf(value: FormStatus): z.input<typeof formStatus> {
  if (value === FormStatus.PUBLISHED) return 'published';
  return value === FormStatus.ARCHIVED ? 'archived' : 'draft';
}
