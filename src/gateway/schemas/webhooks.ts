import { z } from 'zod';
import { type Webhook, WebhookEvent } from '../../../gen/forms/v1/webhooks_pb.js';
import { present, seconds, textOrNull, timeOf, timeOrNull, timeReply } from './common.ts';

const events = {
  'submission.created': WebhookEvent.SUBMISSION_CREATED,
  'session.expired': WebhookEvent.SESSION_EXPIRED,
};
const event = z.enum(['submission.created', 'session.expired']);
const url = z
  .string()
  .describe('An HTTPS URL of a public host, without credentials, at most 2,048 characters.');
const formId = z.string().min(1);

export const createWebhookBody = z
  .strictObject({
    url,
    events: z.array(event).describe('At least one, each once.'),
    secret: z
      .string()
      .min(8)
      .max(256)
      .exactOptional()
      .describe('The signing secret; absent: one is made and shown in the reply.'),
    form_id: formId.exactOptional().describe('Absent: all forms of the project.'),
  })
  .meta({ id: 'CreateWebhookInput' });

export const updateWebhookBody = z
  .strictObject({
    url: url.exactOptional(),
    events: z.array(event).min(1).exactOptional(),
    active: z.boolean().exactOptional().describe('true turns the webhook on again, false turns it off.'),
  })
  .meta({ id: 'UpdateWebhookInput' });

export const rotateSecretBody = z
  .strictObject({
    effective_in: seconds({ minimum: 0, maximum: 604_800, default: 0 })
      .exactOptional()
      .describe('Seconds until deliveries are signed with the new secret.'),
  })
  .meta({ id: 'RotateSecretInput' });

export const testWebhookBody = z
  .strictObject({
    form_id: formId
      .exactOptional()
      .describe('The form whose fields the answers are made up for; absent: the webhook’s, or the newest.'),
  })
  .meta({ id: 'TestWebhookInput' });

const webhook = z
  .object({
    id: z.string(),
    url: z.string(),
    events: z.array(event),
    form_id: z.string().nullable(),
    active: z.boolean(),
    created_at: timeReply,
    disabled_at: timeReply.nullable(),
    disabled_reason: z.string().nullable(),
  })
  .meta({ id: 'Webhook' });

export const webhookReply = z.object({ webhook });
export const webhooksReply = z.object({ webhooks: z.array(webhook) });

export const webhookCreatedReply = z.object({
  webhook,
  secret: z.string().exactOptional().describe('Only if the service made it, and only here.'),
});

export const secretRotatedReply = z.object({ webhook, secret: z.string(), effective_at: timeReply });

/** A webhook as replies have it. */
export function webhookOf(message: Webhook | undefined): z.input<typeof webhook> {
  const there = present(message);
  return {
    id: there.id,
    url: there.url,
    events: event.options.filter((name) => there.events.includes(events[name])),
    form_id: textOrNull(there.formId),
    active: there.active,
    created_at: timeOf(there.createTime),
    disabled_at: timeOrNull(there.disableTime),
    disabled_reason: textOrNull(there.disabledReason),
  };
}

/** The events of a body as a message names them. */
export function eventsOf(names: readonly z.output<typeof event>[] | undefined): WebhookEvent[] {
  return names?.map((name) => events[name]) ?? [];
}
