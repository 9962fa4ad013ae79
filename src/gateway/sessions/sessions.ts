import type { Response } from 'express';
import { z } from 'zod';
import {
  type AwaitSessionResponse,
  type GetSessionResponse,
  SessionsService,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { violationFromMessage } from '../../domain/errors/failure.ts';
import { violationsOf } from '../../domain/errors/violations.ts';
import { optional } from '../../domain/json/optional.ts';
import { readSubject } from '../../http/body.ts';
import { errorBody } from '../../http/errors.ts';
import { sendJson } from '../../http/reply.ts';
import { ifNoneMatch, pageQuery } from '../../http/schemas.ts';
import { session, sessionStatus } from '../../http/sessions.ts';
import { from, present, timeReply, timeText } from '../../http/shape.ts';
import { agentSchemaReply, preferredLanguage, preferredLanguageOf } from '../forms/schemas.ts';
import { customRoute, listRoute, type Route, readQuery, replyOf, route, tagged } from '../route.ts';
import type { RouteContext } from '../route-context.ts';
import { submission } from '../submissions/submissions.ts';
import {
  askBody,
  createSessionBody,
  declineSessionBody,
  readReply,
  sessionCreated,
  sessionQuery,
  submitSessionBody,
  updateSessionBody,
} from './schemas.ts';

const { method: rpcs } = SessionsService;

/** The routes of the interface's sessions, in its order. */
export const sessionRoutes: Route[] = tagged('Sessions', [
  route('post', '/v1/forms/:id/sessions', rpcs.createSession, {
    summary: 'Open a session of a published form',
    body: createSessionBody,
    bodyOptional: true,
    status: 201,
    errors: [409, 410],
    ...sessionCreated,
  }),
  route('post', '/v1/sessions', rpcs.createSession, {
    name: 'ask',
    summary: 'Ask a person: open a session of questions of your own, or of a form',
    shape: askBody,
    check: checkAsked,
    status: 201,
    errors: [404, 409, 410],
    ...sessionCreated,
  }),
  listRoute('/v1/forms/:id/sessions', rpcs.listSessions, {
    summary: 'List a form’s sessions, newest first',
    name: 'sessions',
    query: pageQuery.extend({ status: optional(sessionStatus, 'Default: all.') }),
    item: session,
  }),
  customRoute('get', '/v1/sessions/:id', rpcs.getSession, {
    summary: 'Read a session and its submission, or wait for its end',
    query: sessionQuery,
    reply: readReply.schema,
    handle: readSession,
  }),
  route('get', '/v1/sessions/:id/agent-schema', rpcs.getSessionAgentSchema, {
    notModified: true,
    summary: 'What is left to be answered in a session, for agents',
    headers: { ...preferredLanguage, ...ifNoneMatch },
    input: (_, { request, response }) => ({ language: preferredLanguageOf(request, response) }),
    errors: [409, 410],
    reply: agentSchemaReply.schema.extend({
      session: z.object({
        url: z.string().describe('The page on which a person answers.'),
        expires_at: timeReply,
      }),
    }),
    answer: ({ schema, url, expireTime }) => ({
      session: { url, expires_at: timeText(expireTime) },
      ...agentSchemaReply.of(schema),
    }),
  }),
  route('patch', '/v1/sessions/:id', rpcs.updateSession, {
    summary: 'Extend a session, or change its prefill, metadata or partial answers',
    body: updateSessionBody,
    bodyOptional: true,
    errors: [409, 410],
    ...replyOf(rpcs.updateSession.output, {
      session,
      refused: from(({ refused }) => refused.map(violationFromMessage), errorBody.shape.error.shape.details),
    }),
  }),
  route('post', '/v1/sessions/:id/cancel', rpcs.cancelSession, {
    summary: 'End a session before its time',
    errors: [409, 410],
    ...replyOf(rpcs.cancelSession.output, { session }),
  }),
  route('post', '/v1/sessions/:id/decline', rpcs.declineSession, {
    summary: 'End a session whose person does not want to answer',
    body: declineSessionBody,
    bodyOptional: true,
    errors: [409, 410],
    ...replyOf(rpcs.declineSession.output, { session }),
  }),
  route('post', '/v1/sessions/:id/submit', rpcs.submitSession, {
    summary: 'Submit a session for its user',
    body: submitSessionBody,
    bodyOptional: true,
    status: 201,
    errors: [409, 410],
    ...replyOf(rpcs.submitSession.output, {
      ok: z.literal(true),
      submission_id: from((submitted) => present(submitted.submission).id, z.string()),
      submission,
      session,
    }),
  }),
]);

/** Reads what is asked: a typed message can't carry all that may be wrong with a definition. */
function checkAsked(raw: unknown, { options: { allowPrivateUrls } }: RouteContext) {
  const parsed = askBody.safeParse(raw);
  if (parsed.error) return { ok: false as const, violations: violationsOf(parsed.error, raw) };
  const subject = readSubject(parsed.data, allowPrivateUrls);
  return subject.ok ? { ok: true as const, value: { ...parsed.data, ...subject.value } } : subject;
}

async function readSession(context: RouteContext): Promise<void> {
  const { id: sessionId, request, response } = context;
  const { wait, form: includeForm } = readQuery(request, sessionQuery);
  const read =
    wait === undefined || includeForm
      ? context.call(rpcs.getSession, { sessionId, includeForm })
      : context.call(rpcs.awaitSession, { sessionId, timeout: { seconds: BigInt(wait) } }, { waits: true });
  // Not awaited: a waiting call would keep all that is known here.
  return read.then(sendSession(response));
}

function sendSession(response: Response) {
  return (read: GetSessionResponse | AwaitSessionResponse) => sendJson(response, 200, readReply.of(read));
}
