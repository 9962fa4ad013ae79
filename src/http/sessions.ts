import { z } from 'zod';
import { NotificationSchema, SessionSchema } from '../../gen/headlessforms/v1/sessions_pb.js';
import { optional } from '../domain/json/optional.ts';
import { notifyLimits, sessionSeconds } from '../domain/limits/limits.ts';
import { contextSchema } from '../domain/sessions/context.ts';
import { provenance, readProvenance } from './reply-parts.ts';
import {
  httpsUrl,
  jsonObject,
  objectArgument,
  receiverUrl,
  seconds,
  signingSecret,
  template,
} from './schemas.ts';
import { from, shape, timeReply } from './shape.ts';

const notified = {
  email: z.string().describe('The person who gets the email.').exactOptional(),
  webhook_id: z
    .string()
    .describe('The webhook that is called: it has registered `session.notified`.')
    .exactOptional(),
  message: z
    .string()
    .describe(`What you say to them: plain text, up to ${notifyLimits.message} characters.`)
    .exactOptional(),
};

/** Whom a session notifies, as requests have it. The service checks it. */
const notifyInput = z.strictObject({
  ...notified,
  remind_after: z
    .array(z.int().min(sessionSeconds.min).max(sessionSeconds.max))
    .max(notifyLimits.reminders)
    .describe('Seconds after the session is made, each more than the one before.')
    .exactOptional(),
});

/** Whom a session notifies, and what came of that, as replies have it. */
const notification = shape(NotificationSchema, 'Notification', {
  ...notified,
  remind_after: z.array(z.number()),
  sent_at: timeReply.nullable().describe('When the last notification was sent.'),
  failed: z.boolean().describe('Whether one can’t be sent.'),
  stopped: z.boolean().describe('Whether the person has stopped such emails.'),
  error: optional(z.string(), 'Why one failed or was stopped, or what it waits for.'),
});

export const metadata = jsonObject.describe(
  'Any data, up to 16 KiB; it comes back with events and the submission.',
);

const respondent = z.strictObject({ email: z.string() });

/** What sessions are made with, as REST has it. */
export const sessionOptions = {
  expires_in: seconds(sessionSeconds).exactOptional(),
  prefill: optional(
    jsonObject,
    'Answers to begin with, by field id; all required ones of agents, and none that only a person may give.',
  ),
  metadata: metadata.exactOptional(),
  return_url: optional(
    httpsUrl.min(1),
    'HTTPS. Where the person goes after submitting: at once, or by a link below the form’s message.',
  ),
  return_outcome: optional(
    z.boolean(),
    'Whether to add `session_id` and `outcome` to the query of `return_url`.',
  ),
  context: contextSchema.exactOptional(),
  allow_decline: optional(z.boolean(), 'Whether the person may decline to answer.'),
  callback: optional(
    z
      .strictObject({
        url: receiverUrl,
        secret: signingSecret.exactOptional(),
        template: optional(
          template,
          'What the body is made by, as of a webhook; it may name only what the callback carries.',
        ),
      })
      .meta({ id: 'CallbackInput' }),
    'Called once, when the session ends, whatever its outcome. Needs an API key.',
  ),
  notify: notifyInput
    // Has its description stand first.
    .nonoptional()
    .meta({
      id: 'NotifyInput',
      description:
        'Whom to notify of the session, now and again while it is open: `email`, `webhook_id` or both. Needs an API key with ' +
        '`sessions:notify`.',
    })
    .exactOptional(),
  respondent: optional(
    respondent.meta({ id: 'SessionRespondent' }),
    'Who is to answer: the page asks for a code emailed to that address before it shows anything. Needs an API key ' +
      'with `sessions:notify`.',
  ),
};

/** What sessions are made with, as a tool has it, and what it tells the person. */
export const toolOptions = {
  // Without the name that the API description has: not all clients follow references.
  context: optional(
    z.strictObject(contextSchema.shape),
    'What the person has to see in order to answer: plain text, up to 64 KiB.',
  ),
  allow_decline: z.boolean().default(true).describe('Whether the person may decline, with a reason.'),
  prefill: optional(
    objectArgument,
    'Answers that you know, by field id; the person sees and can change them.',
  ),
  message: z
    .string()
    .min(1)
    .max(500)
    .default('Please answer these questions.')
    .describe('What to tell the person above the questions or beside the link.'),
  expires_in: z
    .int()
    .min(sessionSeconds.min)
    .max(sessionSeconds.max)
    .default(sessionSeconds.default)
    .describe('Seconds until the link stops working.'),
  metadata: optional(objectArgument, 'Data of yours, up to 16 KiB; it comes with the submission.'),
  respondent: optional(
    respondent,
    'The person who is to answer, whom a code is emailed to before the page shows anything: a forwarded link is ' +
      'worth nothing. The key needs sessions:notify.',
  ),
  return_url: optional(z.string().min(1), 'HTTPS. Where the person goes after submitting.'),
  notify: optional(
    notifyInput,
    'Whom to email the question, or which webhook to call, now and as reminders while it is open.',
  ),
  callback: optional(
    z.strictObject({ url: z.string(), secret: z.string() }),
    'Called once, signed with your secret, when the session ends, whatever its outcome: for a workflow that ' +
      'waits outside of this conversation.',
  ),
};

export const sessionStatus = z.enum(['open', 'submitted', 'declined', 'expired', 'cancelled']);

const outcome = sessionStatus.exclude(['open']).nullable();

/** A session as REST has it. */
export const session = shape(SessionSchema, 'Session', {
  id: z.string().describe('Anyone who has it can fill in the session.'),
  form_id: z.string(),
  form_version_id: z.string(),
  status: sessionStatus,
  url: z.string().describe('The hosted page.'),
  expires_at: timeReply,
  created_at: timeReply,
  opened_at: timeReply.nullable(),
  prefill: jsonObject,
  metadata: jsonObject,
  submission_id: z.string().nullable(),
  outcome: outcome.describe('How it ended; null while it is open. Only `submitted` is an answer.'),
  reason: optional(z.string(), 'Why the person declined, in their words.'),
  allow_decline: z.boolean().describe('Whether the person may decline to answer.'),
  context: contextSchema.exactOptional(),
  return_url: optional(z.string(), 'Where the person goes after submitting.'),
  return_outcome: z.boolean().exactOptional(),
  callback: optional(
    z.object({
      url_host: z.string(),
      answers: z.boolean().describe('Whether it carries answers, as long as the maker’s key may read them.'),
    }),
    'Where its end is reported.',
  ),
  notify: {
    ...notification,
    source: 'notification',
    schema: optional(notification.schema, 'Who is notified of it, and what came of that.'),
  },
  respondent: optional(z.object({ email: z.string() }), 'Who is to answer.'),
  partial_answers: optional(jsonObject, 'Only with `allowPartial`.'),
  step: optional(z.int(), 'Where the person is on your page, as you kept it.'),
  provenance: from(
    readProvenance,
    optional(provenance, 'Where each answer that it holds comes from, by field id.'),
  ),
});

/** The least of a session that models have to know. */
export const briefSession = shape(SessionSchema, '', {
  session_id: from('id', z.string()),
  form_id: z.string(),
  status: sessionStatus,
  url: z.string().describe('The page on which a person answers.'),
  expires_at: z.string(),
  notify: {
    ...notification,
    source: 'notification',
    schema: z
      .looseObject({ sent_at: z.string().nullable(), failed: z.boolean(), stopped: z.boolean() })
      .optional()
      .describe('Who is notified, and what came of that.'),
  },
  submission_id: z.string().nullable(),
  outcome: outcome.describe('null while it is open. Only submitted is an answer.'),
  reason: optional(z.string(), 'Why the person declined.'),
});
