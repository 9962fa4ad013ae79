import { type Route, route } from './route.ts';
import { durationOf, present } from './schemas/common.ts';
import {
  createSessionBody,
  sessionOf,
  sessionReply,
  submitSessionBody,
  submittedReply,
  updateSessionBody,
} from './schemas/sessions.ts';
import { submissionOf } from './schemas/submissions.ts';

const tag = 'Sessions';

/** No service accepts a life of less than a second. */
const never = { seconds: -1n, nanos: 0 };

/** The routes of the interface's sessions, in its order. */
export const sessionRoutes: Route[] = [
  route('post', '/v1/forms/:id/sessions', {
    name: 'createSession',
    tag,
    summary: 'Open a session of a published form',
    access: 'sessions:write',
    body: createSessionBody,
    bodyOptional: true,
    call: ({ sessions }) => sessions.createSession,
    input: ({ id, body: { expires_in, ...body } }) => ({
      formId: id,
      ...body,
      expiresIn: durationOf(expires_in),
    }),
    refused: ({ sessions }, id, options) => sessions.createSession({ formId: id, expiresIn: never }, options),
    status: 201,
    errors: [410],
    reply: sessionReply,
    answer: ({ session }) => ({ session: sessionOf(session) }),
  }),
  route('get', '/v1/sessions/:id', {
    name: 'getSession',
    tag,
    summary: 'Read a session',
    access: 'sessions:read',
    call: ({ sessions }) => sessions.getSession,
    input: ({ id }) => ({ sessionId: id }),
    reply: sessionReply,
    answer: ({ session }) => ({ session: sessionOf(session) }),
  }),
  route('patch', '/v1/sessions/:id', {
    name: 'updateSession',
    tag,
    summary: 'Extend a session, or change its prefill, metadata or partial answers',
    access: 'sessions:write',
    body: updateSessionBody,
    bodyOptional: true,
    call: ({ sessions }) => sessions.updateSession,
    input: ({ id, body: { expires_in, extend_by, ...body } }) => ({
      sessionId: id,
      ...body,
      expiresIn: durationOf(expires_in),
      extendBy: durationOf(extend_by),
    }),
    refused: ({ sessions }, id, options) =>
      sessions.updateSession({ sessionId: id, expiresIn: never, extendBy: never }, options),
    errors: [409, 410],
    reply: sessionReply,
    answer: ({ session }) => ({ session: sessionOf(session) }),
  }),
  route('post', '/v1/sessions/:id/submit', {
    name: 'submitSession',
    tag,
    summary: 'Submit a session for its user',
    access: 'sessions:write',
    body: submitSessionBody,
    bodyOptional: true,
    call: ({ sessions }) => sessions.submitSession,
    input: ({ id, body }) => ({ sessionId: id, ...body }),
    // No field has an empty id.
    refused: ({ sessions }, id, options) =>
      sessions.submitSession({ sessionId: id, answers: { '': true } }, options),
    status: 201,
    errors: [409, 410],
    reply: submittedReply,
    answer: ({ submission, session }) => ({
      ok: true as const,
      submission_id: present(submission).id,
      submission: submissionOf(submission),
      session: sessionOf(session),
    }),
  }),
];
