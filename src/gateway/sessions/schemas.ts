import { z } from 'zod';
import {
  CreateSessionResponseSchema,
  GetSessionResponseSchema,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { daysKept } from '../../domain/definition/settings.ts';
import { optional } from '../../domain/json/optional.ts';
import { sessionSeconds, waitSeconds } from '../../domain/limits/limits.ts';
import { flag, jsonObject, seconds, timeInput } from '../../http/schemas.ts';
import { metadata, session, sessionOptions } from '../../http/sessions.ts';
import { shape } from '../../http/shape.ts';
import { publicForm, publicFormOf } from '../forms/public-form.ts';
import { replyOf } from '../route.ts';
import { submission } from '../submissions/submissions.ts';

const { default: _, ...range } = sessionSeconds;

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
