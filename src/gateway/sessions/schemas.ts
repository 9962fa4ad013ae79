import { z } from 'zod';
import {
  CreateSessionResponseSchema,
  GetSessionResponseSchema,
  SessionSchema,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { daysKept } from '../../domain/definition/settings.ts';
import { optional } from '../../domain/json/optional.ts';
import { sessionSeconds, waitSeconds } from '../../domain/limits/limits.ts';
import { contextSchema } from '../../domain/sessions/context.ts';
import { notification, notifyInput } from '../../http/notify.ts';
import { provenance, readProvenance } from '../../http/reply-parts.ts';
import { from, shape, timeReply } from '../../http/shape.ts';
import { publicForm, publicFormOf } from '../forms/public-form.ts';
import { replyOf } from '../route.ts';
import {
  flag,
  httpsUrl,
  jsonObject,
  receiverUrl,
  seconds,
  signingSecret,
  template,
  timeInput,
} from '../schemas.ts';
import { submission } from '../submissions/submissions.ts';

const metadata = jsonObject.describe('Any data, up to 16 KiB; it comes back with events and the submission.');

const { default: _, ...range } = sessionSeconds;

const sessionOptions = {
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
    z.strictObject({ email: z.string() }).meta({ id: 'SessionRespondent' }),
    'Who is to answer: the page asks for a code emailed to that address before it shows anything. Needs an API key ' +
      'with `sessions:notify`.',
  ),
};

export const createSessionBody = z.strictObject(sessionOptions).meta({ id: 'CreateSessionInput' });

export const askBody = z
  .strictObject({
    form_id: optional(z.string(), 'A published form.'),
    definition: optional(
      jsonObject,
      'Questions of your own, up to 20 fields, as in `FormDefinition` without `delivery`. `name`, `slug`, and the ' +
        'fields’ `id` and `type` may be absent: a field is asked by its label.',
    ),
    schema: optional(
      jsonObject,
      'The same as a flat JSON Schema of the answer, as Zod and Pydantic write it: strings (also of the formats date, ' +
        'date-time, email and uri), numbers, integers, booleans, enums, and arrays of an enum.',
    ),
    retention_days: optional(
      daysKept,
      'With `definition` or `schema`: how long answers are kept, and the questions after the end of their last ' +
        'session. Default: 30.',
    ),
    ...sessionOptions,
  })
  .meta({
    id: 'AskInput',
    description: 'One of `form_id`, `definition` and `schema`, and what sessions are made with.',
  });

export const updateSessionBody = z
  .strictObject({
    expires_in: optional(seconds(range), 'Seconds from now. Only one of this, `extend_by` and `expires_at`.'),
    extend_by: optional(
      seconds(range),
      'Seconds to add, to at most 30 days from now. A repeated request adds them again without a key.',
    ),
    expires_at: optional(timeInput, 'When it ends, at most 30 days from now.'),
    prefill: optional(jsonObject, 'Merged into what is there; null removes.'),
    metadata: optional(metadata, 'Merged into what is there; null removes.'),
    answers: optional(jsonObject, 'Partial answers, merged into what is there; only with `allowPartial`.'),
    step: optional(
      z.int32(),
      'Where the person is on your page, 1 to 100; only with `allowPartial`. The hosted page finds its own.',
    ),
    lenient: optional(z.boolean(), 'Keeps `answers` that fit; `refused` lists the others.'),
  })
  .meta({
    id: 'UpdateSessionInput',
    not: {
      anyOf: [
        ['expires_in', 'extend_by'],
        ['expires_in', 'expires_at'],
        ['extend_by', 'expires_at'],
      ].map((required) => ({ properties: Object.fromEntries(required.map((name) => [name, {}])), required })),
    },
  });

export const submitSessionBody = z
  .strictObject({
    answers: optional(
      jsonObject,
      'They go over partial answers, those over prefill, and that over defaults; null clears.',
    ),
    source: optional(z.string(), 'In your words; default `api`. Needs an API key.'),
  })
  .meta({ id: 'SubmitSessionInput' });

export const declineSessionBody = z
  .strictObject({ reason: optional(z.string(), 'Why, up to 2,000 characters.') })
  .meta({ id: 'DeclineSessionInput' });

export const sessionStatus = z.enum(['open', 'submitted', 'declined', 'expired', 'cancelled']);

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
  outcome: z
    .enum(['submitted', 'declined', 'expired', 'cancelled'])
    .nullable()
    .describe('How it ended; null while it is open. Only `submitted` is an answer.'),
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

const sessionRead = {
  session,
  submission: {
    ...submission,
    schema: optional(submission.schema, 'What ended the session, for keys with `submissions:read`.'),
  },
};

export const readReply = shape(GetSessionResponseSchema, '', {
  ...sessionRead,
  form: { schema: optional(publicForm, 'With `form=true`.'), of: publicFormOf },
});

export const sessionCreated = replyOf(CreateSessionResponseSchema, {
  ...sessionRead,
  callback_secret: optional(
    z.string(),
    'The signing secret of the callback, if the service made it; only here.',
  ),
});

const secondsExpected = `Expected a whole number from ${waitSeconds.min} to ${waitSeconds.max}`;

export const sessionQuery = z.object({
  form: flag('Adds the form in the version that the session keeps, and answers at once, whatever `wait` is.'),
  wait: z
    .string()
    .regex(/^\d{1,9}$/, secondsExpected)
    .transform(Number)
    .refine((seconds) => seconds >= waitSeconds.min && seconds <= waitSeconds.max, secondsExpected)
    .exactOptional()
    .meta({
      type: 'integer',
      minimum: waitSeconds.min,
      maximum: waitSeconds.max,
      description: 'Answers once the session has ended, at the latest after so many seconds.',
    }),
});
