import { z } from 'zod';
import { NotificationSchema } from '../../gen/headlessforms/v1/sessions_pb.js';
import { optional } from '../domain/json/optional.ts';
import { notifyLimits, sessionSeconds } from '../domain/limits/limits.ts';
import { shape, timeReply } from './shape.ts';

const email = z.string().describe('The person who gets the email.');
const webhookId = z.string().describe('The webhook that is called: it has registered `session.notified`.');
const message = z
  .string()
  .describe(`What you say to them: plain text, up to ${notifyLimits.message} characters.`);
const remindAfter = z
  .array(z.int().min(sessionSeconds.min).max(sessionSeconds.max))
  .max(notifyLimits.reminders)
  .describe('Seconds after the session is made, each more than the one before.');

/** Whom a session notifies, as requests have it. The service checks it. */
export const notifyInput = z.strictObject({
  email: email.exactOptional(),
  webhook_id: webhookId.exactOptional(),
  message: message.exactOptional(),
  remind_after: remindAfter.exactOptional(),
});

/** Whom a session notifies, and what came of that, as replies have it. */
export const notification = shape(NotificationSchema, 'Notification', {
  email: email.exactOptional(),
  webhook_id: webhookId.exactOptional(),
  message: message.exactOptional(),
  remind_after: z.array(z.number()),
  sent_at: timeReply.nullable().describe('When the last notification was sent.'),
  failed: z.boolean().describe('Whether one can’t be sent.'),
  stopped: z.boolean().describe('Whether the person has stopped such emails.'),
  error: optional(z.string(), 'Why one failed or was stopped, or what it waits for.'),
});
