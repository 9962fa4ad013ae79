import type { Response } from 'express';
import { z } from 'zod';
import {
  type AwaitSessionResponse,
  type CreateSessionResponse,
  type GetSessionResponse,
  type Session,
  SessionSchema,
  SessionStatus,
  SessionsService,
} from '../../gen/headlessforms/v1/sessions_pb.js';
import { violationsOf } from '../domain/errors/violations.ts';
import { sessionSeconds, waitSeconds } from '../domain/limits/limits.ts';
import { contextSchema, contextToJson, contextToMessage } from '../domain/sessions/context.ts';
import { readSubject } from '../http/body.ts';
import { notifyOf, notifyReply, notifySchema, notifyToMessage } from '../http/notify.ts';
import { provenance, readProvenance } from '../http/provenance.ts';
import { sendJson } from '../http/reply.ts';
import { durationOf, enumValue, from, present, shape, timeOf, timeReply } from '../http/shape.ts';
import { agentSchema, preferredLanguage, preferredLanguageOf } from './forms/schemas.ts';
import { listRoute } from './list-route.ts';
import { customRoute, type Route, readQuery, route, tagged } from './route.ts';
import type { RouteContext } from './route-context.ts';
import {
  httpsUrl,
  idempotencyKey,
  idempotencyKeyOf,
  jsonObject,
  pageQuery,
  seconds,
  signingSecret,
  template,
} from './schemas.ts';
import { submission } from './submissions/submissions.ts';

const { method: rpcs } = SessionsService;

const metadata = jsonObject.describe('Any data, up to 16 KiB; it comes back with events and the submission.');

const { default: _, ...range } = sessionSeconds;

const sessionOptions = {
  expires_in: seconds(sessionSeconds).exactOptional(),
  prefill: jsonObject
    .exactOptional()
    .describe(
      'Answers to begin with, by field id; all required ones of agents, and none that only a person may give.',
    ),
  metadata: metadata.exactOptional(),
  return_url: httpsUrl
    .min(1)
    .exactOptional()
    .describe(
      'HTTPS. Where the person goes after submitting: at once, or by a link below the form’s message.',
    ),
  return_outcome: z
    .boolean()
    .exactOptional()
    .describe('Whether to add `session_id` and `outcome` to the query of `return_url`.'),
  context: contextSchema.exactOptional(),
  allow_decline: z.boolean().exactOptional().describe('Whether the person may decline to answer.'),
  callback: z
    .strictObject({
      url: httpsUrl.describe('An HTTPS URL of a public host, without credentials.'),
      secret: signingSecret.exactOptional(),
      template: template
        .exactOptional()
        .describe('What the body is made by, as of a webhook; it may name only what the callback carries.'),
    })
    .meta({ id: 'CallbackInput' })
    .exactOptional()
    .describe('Called once, when the session ends, whatever its outcome. Needs an API key.'),
  notify: notifySchema.exactOptional(),
};

const createSessionBody = z.strictObject(sessionOptions).meta({ id: 'CreateSessionInput' });

const askBody = z
  .strictObject({
    form_id: z.string().exactOptional().describe('A published form.'),
    definition: jsonObject
      .exactOptional()
      .describe(
        'Questions of your own, up to 20 fields, as in `FormDefinition` without `delivery`. `name`, `slug`, and the ' +
          'fields’ `id` and `type` may be absent: a field is asked by its label.',
      ),
    schema: jsonObject
      .exactOptional()
      .describe(
        'The same as a flat JSON Schema of the answer, as Zod and Pydantic write it: strings (also of the formats date, ' +
          'date-time, email and uri), numbers, integers, booleans, enums, and arrays of an enum.',
      ),
    retention_days: z
      .int()
      .min(1)
      .max(3650)
      .exactOptional()
      .describe(
        'With `definition` or `schema`: how long answers are kept, and the questions after the end of their last ' +
          'session. Default: 30.',
      ),
    ...sessionOptions,
  })
  .meta({
    id: 'AskInput',
    description: 'One of `form_id`, `definition` and `schema`, and what sessions are made with.',
  });

const updateSessionBody = z
  .strictObject({
    expires_in: seconds(range).exactOptional().describe('Seconds from now. Not together with `extend_by`.'),
    extend_by: seconds(range).exactOptional().describe('Seconds to add, to at most 30 days from now.'),
    prefill: jsonObject.exactOptional().describe('Merged into what is there; null removes.'),
    metadata: metadata.exactOptional().describe('Merged into what is there; null removes.'),
    answers: jsonObject
      .exactOptional()
      .describe('Partial answers, merged into what is there; only with `allowPartial`.'),
  })
  .meta({
    id: 'UpdateSessionInput',
    not: { properties: { expires_in: {}, extend_by: {} }, required: ['expires_in', 'extend_by'] },
  });

const submitSessionBody = z
  .strictObject({
    answers: jsonObject
      .exactOptional()
      .describe('They go over partial answers, those over prefill, and that over defaults; null clears.'),
  })
  .meta({ id: 'SubmitSessionInput' });

const declineSessionBody = z
  .strictObject({ reason: z.string().exactOptional().describe('Why, up to 2,000 characters.') })
  .meta({ id: 'DeclineSessionInput' });

const sessionStatus = z.enum(['open', 'submitted', 'declined', 'expired', 'cancelled']);

const session = shape(SessionSchema, 'Session', {
  id: z.string().describe('Whoever has it can fill the session.'),
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
  reason: z.string().exactOptional().describe('Why the person declined, in their words.'),
  allow_decline: z.boolean().describe('Whether the person may decline to answer.'),
  context: from(({ context }: Session) => context && contextToJson(context), contextSchema.exactOptional()),
  return_url: z.string().exactOptional().describe('Where the person goes after submitting.'),
  return_outcome: z.boolean().exactOptional(),
  callback: from(
    ({ callback }) => callback && { url_host: callback.urlHost, answers: callback.answers },
    z
      .object({
        url_host: z.string(),
        answers: z
          .boolean()
          .describe('Whether it carries answers, as long as the maker’s key may read them.'),
      })
      .exactOptional()
      .describe('Where its end is reported.'),
  ),
  notify: from(
    ({ notification }: Session) => notifyOf(notification),
    notifyReply.exactOptional().describe('Who is notified of it, and what came of that.'),
  ),
  partial_answers: jsonObject.exactOptional().describe('Only with `allowPartial`.'),
  provenance: from(
    readProvenance,
    provenance.exactOptional().describe('Where each answer that it holds comes from, by field id.'),
  ),
});

const sessionReply = z.object({ session: session.schema });

const sessionCreatedReply = sessionReply.extend({
  callback_secret: z
    .string()
    .exactOptional()
    .describe('The signing secret of the callback, if the service made it; only here.'),
});

const readReply = z.object({
  session: session.schema,
  submission: submission.schema
    .exactOptional()
    .describe('What ended the session, for keys with `submissions:read`.'),
});

const secondsExpected = `Expected a whole number from ${waitSeconds.min} to ${waitSeconds.max}`;

const sessionQuery = z.object({
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

const submittedReply = z.object({
  ok: z.literal(true),
  submission_id: z.string(),
  submission: submission.schema,
  session: session.schema,
});

/** The routes of the interface's sessions, in its order. */
export const sessionRoutes: Route[] = tagged('Sessions', [
  route('post', '/v1/forms/:id/sessions', rpcs.createSession, {
    summary: 'Open a session of a published form',
    body: createSessionBody,
    bodyOptional: true,
    headers: { 'Idempotency-Key': idempotencyKey },
    input: ({ id, body }, { request }) => ({
      subject: { case: 'formId' as const, value: id },
      ...optionsOf(body),
      idempotencyKey: idempotencyKeyOf(request),
    }),
    status: 201,
    errors: [409, 410],
    reply: sessionCreatedReply,
    answer: createdOf,
  }),
  route('post', '/v1/sessions', rpcs.createSession, {
    name: 'ask',
    summary: 'Ask a person: open a session of questions of your own, or of a form',
    shape: askBody,
    check: checkAsked,
    headers: { 'Idempotency-Key': idempotencyKey },
    input: ({ body: { subject, retentionDays, ...body } }, { request }) => ({
      subject,
      retentionDays,
      ...optionsOf(body),
      idempotencyKey: idempotencyKeyOf(request),
    }),
    status: 201,
    errors: [404, 409, 410],
    reply: sessionCreatedReply,
    answer: createdOf,
  }),
  listRoute('/v1/forms/:id/sessions', rpcs.listSessions, {
    summary: 'List a form’s sessions, newest first',
    name: 'sessions',
    query: pageQuery.extend({ status: sessionStatus.exactOptional().describe('Default: all.') }),
    input: ({ id, page, query: { status } }) => ({
      formId: id,
      ...page,
      status: enumValue(SessionStatus, status),
    }),
    item: session,
  }),
  customRoute('get', '/v1/sessions/:id', rpcs.getSession, {
    summary: 'Read a session and its submission, or wait for its end',
    query: sessionQuery,
    reply: readReply,
    handle: readSession,
  }),
  route('get', '/v1/sessions/:id/agent-schema', rpcs.getSessionAgentSchema, {
    summary: 'What is left to be answered in a session, for agents',
    headers: preferredLanguage,
    input: ({ id }, { request, response }) => ({
      sessionId: id,
      language: preferredLanguageOf(request, response),
    }),
    errors: [409, 410],
    reply: agentSchema.schema.extend({
      session: z.object({
        url: z.string().describe('The page on which a person answers.'),
        expires_at: timeReply,
      }),
    }),
    answer: ({ schema, url, expireTime }) => ({
      session: { url, expires_at: timeOf(expireTime) },
      ...agentSchema.of(schema),
    }),
  }),
  route('patch', '/v1/sessions/:id', rpcs.updateSession, {
    summary: 'Extend a session, or change its prefill, metadata or partial answers',
    body: updateSessionBody,
    bodyOptional: true,
    input: ({ id, body: { expires_in, extend_by, ...body } }) => ({
      sessionId: id,
      ...body,
      expiresIn: durationOf(expires_in),
      extendBy: durationOf(extend_by),
    }),
    errors: [409, 410],
    reply: sessionReply,
    answer: ({ session: there }) => ({ session: session.of(there) }),
  }),
  route('post', '/v1/sessions/:id/cancel', rpcs.cancelSession, {
    summary: 'End a session before its time',
    input: ({ id }) => ({ sessionId: id }),
    errors: [409, 410],
    reply: sessionReply,
    answer: ({ session: there }) => ({ session: session.of(there) }),
  }),
  route('post', '/v1/sessions/:id/decline', rpcs.declineSession, {
    summary: 'End a session whose person does not want to answer',
    body: declineSessionBody,
    bodyOptional: true,
    input: ({ id, body: { reason = '' } }) => ({ sessionId: id, reason }),
    errors: [409, 410],
    reply: sessionReply,
    answer: ({ session: there }) => ({ session: session.of(there) }),
  }),
  route('post', '/v1/sessions/:id/submit', rpcs.submitSession, {
    summary: 'Submit a session for its user',
    body: submitSessionBody,
    bodyOptional: true,
    input: ({ id, body }) => ({ sessionId: id, ...body }),
    status: 201,
    errors: [409, 410],
    reply: submittedReply,
    answer: (submitted) => ({
      ok: true as const,
      submission_id: present(submitted.submission).id,
      submission: submission.of(submitted.submission),
      session: session.of(submitted.session),
    }),
  }),
]);

function createdOf({ session: there, callbackSecret }: CreateSessionResponse) {
  return { session: session.of(there), ...(callbackSecret !== '' && { callback_secret: callbackSecret }) };
}

/** Reads what is asked: a typed message can't carry all that may be wrong with a definition. */
function checkAsked(raw: unknown, { options: { allowPrivateUrls } }: RouteContext) {
  const parsed = askBody.safeParse(raw);
  if (parsed.error) return { ok: false as const, violations: violationsOf(parsed.error, raw) };
  const {
    form_id: _,
    definition: __,
    schema: ___,
    retention_days: retentionDays = 0,
    ...options
  } = parsed.data;
  const subject = readSubject(parsed.data, allowPrivateUrls);
  return subject.ok
    ? { ok: true as const, value: { ...options, subject: subject.value, retentionDays } }
    : subject;
}

/** What a session is made with, beside what it asks. */
function optionsOf({
  expires_in,
  return_url,
  return_outcome,
  allow_decline,
  context,
  notify,
  ...body
}: SessionOptions) {
  return {
    ...body,
    expiresIn: durationOf(expires_in),
    returnUrl: return_url ?? '',
    returnOutcome: return_outcome ?? false,
    allowDecline: allow_decline ?? false,
    ...(context !== undefined && { context: contextToMessage(context) }),
    ...(notify !== undefined && { notify: notifyToMessage(notify) }),
  };
}

type SessionOptions = z.output<typeof createSessionBody>;

async function readSession(context: RouteContext): Promise<void> {
  const { id: sessionId, request, response } = context;
  const { wait } = readQuery(request, sessionQuery);
  const read =
    wait === undefined
      ? context.call(rpcs.getSession, { sessionId })
      : context.call(rpcs.awaitSession, { sessionId, timeout: durationOf(wait) }, { waits: true });
  // Not awaited: what waits would keep all that is known here.
  return read.then(sendSession(response));
}

function sendSession(response: Response) {
  return ({ session: there, submission: given }: GetSessionResponse | AwaitSessionResponse) =>
    sendJson(response, 200, {
      session: session.of(there),
      ...(given !== undefined && { submission: submission.of(given) }),
    } satisfies z.input<typeof readReply>);
}
