import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  type GetSessionAgentSchemaRequest,
  type GetSessionRequest,
  type ListSessionsRequest,
  SessionStatus,
  type SessionsService,
  type SubmitSessionRequest,
} from '../../../gen/forms/v1/sessions_pb.js';
import { translate } from '../../domain/definition/translate.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { callerOf } from '../../rpc/context.ts';
import { listSessions as listStored } from '../../store/sessions/session-pages.ts';
import { type Session, sessionStatuses } from '../../store/sessions/session-table.ts';
import { findAnySession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { agentSchemaToMessage } from '../forms/agent-schema-message.ts';
import { publishedForm, requireOwnForm } from '../forms/form-access.ts';
import { badParameter, pageRequestOf } from '../request-values.ts';
import { acceptAnswers, checkSize } from '../submissions/accept-answers.ts';
import { submissionToMessage } from '../submissions/submission-message.ts';
import { createAwaitSession } from './await-session.ts';
import { cancelSession, changeSession } from './change-session.ts';
import { createSession } from './create-session.ts';
import { noteSession, openSession, ownSession, savedAnswers } from './session-access.ts';
import { sessionStatusOf, sessionToMessage } from './session-message.ts';

/** Opens sessions for people or agents to fill, and reads, awaits, lists, changes, cancels and submits them. */
export function sessionsService(context: ServiceContext): ServiceImpl<typeof SessionsService> {
  return {
    createSession: (request, call) => createSession(context, request, call),
    getSession: (request, call) => getSession(context, request, call),
    awaitSession: createAwaitSession(context),
    getSessionAgentSchema: (request, call) => getSessionAgentSchema(context, request, call),
    listSessions: (request, call) => listSessions(context, request, call),
    updateSession: (request, call) => changeSession(context, request, call),
    cancelSession: (request, call) => cancelSession(context, request, call),
    submitSession: (request, call) => submitSession(context, request, call),
  };
}

async function getSession(context: ServiceContext, { sessionId }: GetSessionRequest, call: HandlerContext) {
  const session = await ownSession(context.database, callerOf(call), sessionId);
  noteSession(context, call, session);
  return { session: sessionToMessage(context, await publishedForm(context.forms, session.formId), session) };
}

async function getSessionAgentSchema(
  context: ServiceContext,
  { sessionId, language }: GetSessionAgentSchemaRequest,
  call: HandlerContext,
) {
  const session = await ownSession(context.database, callerOf(call), sessionId);
  const { form, version } = await openSession(context, session);
  noteSession(context, call, session);
  const definition = translate(version.definition, preferredLanguages(language));
  const described = { formId: form.id, versionId: version.id, definition };
  return {
    schema: await agentSchemaToMessage(context, described, savedAnswers(session)),
    url: `${context.settings.hostedUrl}/f/${session.id}`,
    expireTime: timestampFromDate(session.expiresAt),
  };
}

/** A page's token is the id of its last session. */
async function listSessions(context: ServiceContext, request: ListSessionsRequest, call: HandlerContext) {
  await requireOwnForm(context.forms, callerOf(call), request.formId);
  const { limit, cursor } = pageRequestOf(request, 'sess');
  const after = cursor === undefined ? undefined : await findAnySession(context.database, cursor);
  if (after !== undefined && after?.formId !== request.formId) {
    throw badParameter('page_token', 'invalid_string', 'Expected a cursor that a list has given');
  }
  const status = statusFilterOf(request.status);
  const { items, nextCursor } = await listStored(context.database, request.formId, {
    ...(status !== undefined && { status }),
    ...(after !== undefined && { after }),
    limit,
  });
  context.audit.note(call, { formId: request.formId });
  if (items.length === 0) return {};
  const form = await publishedForm(context.forms, request.formId);
  return {
    sessions: items.map((session) => sessionToMessage(context, form, session)),
    nextPageToken: nextCursor ?? '',
  };
}

async function submitSession(
  context: ServiceContext,
  { sessionId, answers = {} }: SubmitSessionRequest,
  call: HandlerContext,
) {
  const session = await ownSession(context.database, callerOf(call), sessionId);
  const { form, version } = await openSession(context, session);
  checkSize(form, answers);
  const entry = { call, form, version, session, answers, source: 'api' };
  const { submissionId, submission } = await acceptAnswers(context, entry);
  const submitted: Session = {
    ...session,
    status: 'submitted',
    submittedAt: submission.createdAt,
    submissionId,
  };
  return { submission: submissionToMessage(submission), session: sessionToMessage(context, form, submitted) };
}

/** The status that a list is asked for; undefined: all. Throws for one that this version does not know. */
function statusFilterOf(status: SessionStatus): Session['status'] | undefined {
  if (status === SessionStatus.UNSPECIFIED) return undefined;
  const known = sessionStatuses.find((name) => sessionStatusOf[name] === status);
  if (known === undefined)
    throw badParameter('status', 'custom', `Expected one of ${sessionStatuses.join(', ')}`);
  return known;
}
