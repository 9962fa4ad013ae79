import { timestampDate } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import type { Notification } from '../../gen/headlessforms/v1/sessions_pb.js';
import { notifyLimits, sessionSeconds } from '../domain/limits/limits.ts';
import { durationOf, timeReply } from './shape.ts';

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
export const notifySchema = z
  .strictObject({
    email: email.exactOptional(),
    webhook_id: webhookId.exactOptional(),
    message: message.exactOptional(),
    remind_after: remindAfter.exactOptional(),
  })
  .meta({
    id: 'NotifyInput',
    description:
      'Whom to notify of the session, now and again while it is open: `email`, `webhook_id` or both. Needs an API key with ' +
      '`sessions:notify`.',
  });

/** Whom a session notifies, and what came of that, as replies have it. */
export const notifyReply = z
  .object({
    email: email.exactOptional(),
    webhook_id: webhookId.exactOptional(),
    message: message.exactOptional(),
    remind_after: z.array(z.number()),
    sent_at: timeReply.nullable().describe('When the last notification was sent.'),
    failed: z.boolean().describe('Whether one can’t be sent.'),
    stopped: z.boolean().describe('Whether the person has stopped such emails.'),
    error: z.string().exactOptional().describe('Why one failed or was stopped, or what it waits for.'),
  })
  .meta({ id: 'Notification' });

/** The message of what a request says. */
export function notifyToMessage(notify: z.output<typeof notifySchema>) {
  return {
    email: notify.email ?? '',
    webhookId: notify.webhook_id ?? '',
    message: notify.message ?? '',
    remindAfter: (notify.remind_after ?? []).flatMap((seconds) => durationOf(seconds) ?? []),
  };
}

/** The reply of a message; undefined for a session that notifies nobody. */
export function notifyOf(notification: Notification | undefined): z.input<typeof notifyReply> | undefined {
  if (notification === undefined) return undefined;
  const { webhookId: id, remindAfter: durations, sentTime, failed, stopped, error, ...words } = notification;
  return {
    ...(words.email !== '' && { email: words.email }),
    ...(id !== '' && { webhook_id: id }),
    ...(words.message !== '' && { message: words.message }),
    remind_after: durations.map(({ seconds }) => Number(seconds)),
    sent_at: sentTime === undefined ? null : timestampDate(sentTime).toISOString(),
    failed,
    stopped,
    ...(error !== '' && { error }),
  };
}
