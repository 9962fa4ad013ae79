import { z } from 'zod';
import { asciiAddress } from '../addresses/ascii-address.ts';
import { isEmailAddress } from '../addresses/email-address.ts';
import type { Violation } from '../errors/violations.ts';
import { type Field, isShown } from '../fields/field.ts';
import { textUpTo } from '../fields/text.ts';
import { optional } from '../json/optional.ts';
import { formLimits, secretLength } from '../limits/limits.ts';

/** The shape of an address that events are sent to. One of an instance with WEBHOOK_ALLOW_PRIVATE may be http, too. */
export const RECEIVER_PATTERN = '^https://[^/]';

/** Makes a schema of such an address say what an instance with WEBHOOK_ALLOW_PRIVATE takes. */
export function takingPrivateReceivers(schema: { [key: string]: unknown }): void {
  if (schema.pattern !== RECEIVER_PATTERN) return;
  schema.pattern = RECEIVER_PATTERN.replace('https', 'https?');
  schema.description = 'An http or https URL without credentials; here its host may be private.';
}

const fieldId = textUpTo(formLimits.fieldId);

/** One line: it becomes a header of an email. */
const subject = textUpTo(200).regex(/^\P{Cc}*$/u, 'Expected a single line');

const message = textUpTo(10_000);

const autoresponseSchema = z.strictObject({
  to: fieldId.describe('The id of an email field.'),
  subject,
  message,
});

/** The texts of the email to the person who answered, in another language. */
export const autoresponseTranslation = z.strictObject({
  subject: subject.exactOptional(),
  message: message.exactOptional(),
});

/** One plain email address, as it is stored. */
export const emailAddress = z
  .string()
  .overwrite(asciiAddress)
  .refine(isEmailAddress, 'Expected an email address')
  .meta({ format: 'email' });

const emailDeliverySchema = z
  .strictObject({
    type: z.literal('email'),
    to: optional(
      z.array(emailAddress).max(5),
      "In place of the owner's address, each after it has confirmed. Until one has: the owner's.",
    ),
    subject: subject.exactOptional(),
    replyTo: optional(fieldId, 'An email field. Absent: one that people see.'),
    answererName: optional(fieldId, 'A text field. Absent: one such as `name`, or the email.'),
    autoresponse: optional(autoresponseSchema, 'An email to the person who answered.'),
  })
  .describe('An email for each submission.');

const webhookDeliverySchema = z
  .strictObject({
    type: z.literal('webhook'),
    url: z
      .string()
      .exactOptional()
      .meta({ format: 'uri', pattern: RECEIVER_PATTERN, maxLength: formLimits.url })
      .describe(
        'An HTTPS URL of a public host. A new version of a form may leave it out: it keeps the one it has.',
      ),
    urlHost: optional(
      z.string(),
      'In place of the URL for keys without webhooks:read; ignored when it is sent.',
    ),
    secret: optional(
      z.string().min(secretLength.min).max(secretLength.max),
      'The signing secret; never given back.',
    ),
  })
  .describe('A signed POST for each submission.');

/** Where submissions go, as people send it. */
export const deliverySchema = z
  .discriminatedUnion('type', [emailDeliverySchema, webhookDeliverySchema])
  .meta({ id: 'Delivery', description: 'Where submissions go.' });

/** Where submissions go, as people send it: a webhook may come with its secret. */
export type DeliveryInput = z.output<typeof deliverySchema>;

/** The email fields that people see, the one first whose answer is replied to where `replyTo` names none. */
export function fieldsToReplyTo(fields: readonly Field[]): Field[] {
  const isSure = ({ required, visibleWhen }: Field) => Number(required && visibleWhen === undefined);
  const seen = fields.filter((field) => field.type === 'email' && isShown(field));
  return seen.toSorted((left, right) => isSure(right) - isSure(left));
}

/** The addresses beside the owner's that a definition has submissions emailed to. */
export function recipientsIn(delivery: FormDelivery): string[] {
  return delivery.type === 'email' ? (delivery.to ?? []) : [];
}

/** What is wrong with a form that nobody activates by email, if its submissions would be emailed to nobody. */
export function ownerProblems(further: readonly string[] | undefined, owner: string): Violation[] {
  if (further === undefined || further.length > 0 || owner !== '') return [];
  const message =
    'Required: responses would be emailed to nobody. Name an owner, or addresses in delivery.to';
  return [{ path: 'owner', code: 'invalid_type', message }];
}

/** Where submissions go. The secret of a webhook is never part of it. */
export type FormDelivery = EmailDelivery | WebhookDelivery;
export type EmailDelivery = z.output<typeof emailDeliverySchema>;
type WebhookDelivery = { type: 'webhook'; url: string };
