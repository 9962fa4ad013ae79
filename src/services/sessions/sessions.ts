import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  type CancelSessionRequest,
  type CreateSessionRequest,
  type GetSessionAgentSchemaRequest,
  type GetSessionRequest,
  type ListSessionsRequest,
  SessionStatus,
  type SessionsService,
  type SubmitSessionRequest,
  type UpdateSessionRequest,
} from '../../../gen/forms/v1/sessions_pb.js';
import { preferredLanguages } from '../../domain/accept-language.ts';
import { translate } from '../../domain/definition/translate.ts';
import { sessionEvent } from '../../domain/events/session-event.ts';
import { newSessionId } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import { insertAnnouncedEvents } from '../../store/deliveries/webhook-deliveries.ts';
import { listSessions as listStored } from '../../store/sessions/session-pages.ts';
import { type Session, sessionStatuses } from '../../store/sessions/session-table.ts';
import {
  cancelLockedSession,
  findAnySession,
  findRepeatedSession,
  insertSession,
  lockSession,
  updateSession,
} from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { agentSchemaToMessage } from '../forms/agent-schema-message.ts';
import { type PublishedForm, publishedForm, refuseIfClosed, requireOwnForm } from '../forms/form-access.ts';
import type { LiveVersion } from '../forms/form-reader.ts';
import { type First, type Idempotency, onceByKey, readIdempotency, sameRequest } from '../idempotency.ts';
import { strangerAddress } from '../keyless-storage.ts';
import { badParameter, pageRequestOf } from '../request-values.ts';
import { acceptAnswers, checkSize } from '../submissions/accept-answers.ts';
import { submissionToMessage } from '../submissions/submission-message.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { createAwaitSession } from './await-session.ts';
import { noteSession, openSession, ownSession, refuseIfEnded, savedAnswers } from './session-access.ts';
import { sessionStatusOf, sessionToMessage } from './session-message.ts';
import {
  agentProblems,
  lifeOf,
  lifeProblems,
  metadataProblems,
  returnUrlProblems,
  toSessionChange,
  type UpdateView,
  withoutNulls,
} from './session-request.ts';

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

async function createSession(context: ServiceContext, request: CreateSessionRequest, call: HandlerContext) {
  const form = await publishedForm(context.forms, request.formId, callerOf(call).projectId);
  await admitValues(context, form, request, call);
  const idempotency = readIdempotency(request.idempotencyKey, {
    expires_in: lifeOf(request),
    prefill: request.prefill ?? {},
    metadata: request.metadata ?? {},
    ...(request.returnUrl !== '' && { return_url: request.returnUrl }),
  });
  const session = await onceByKey(
    idempotency,
    () => openNewSession(context, form, request, { idempotency, keyId: callerOf(call).keyId }),
    async (key) => {
      const first = await findRepeatedSession(context.database, form.id, key);
      return first && firstOf(first);
    },
  );
  noteSession(context, call, session);
  return { session: sessionToMessage(context, form, session) };
}

async function openNewSession(
  context: ServiceContext,
  form: PublishedForm,
  request: CreateSessionRequest,
  { idempotency, keyId }: { idempotency: Idempotency | undefined; keyId: string | undefined },
): Promise<Session> {
  if (form.status !== 'published') throw notFound('form');
  refuseIfClosed(form, context.now());
  const prefill = await form.version.checkAnswers(request.prefill ?? {}, {
    root: 'prefill',
    required: false,
  });
  const files = prefill.ok ? await claimUploads(context, form.version, prefill.answers, 'prefill') : prefill;
  const violations = [
    ...lifeProblems(request.expiresIn, 'expires_in'),
    ...metadataProblems(request.metadata),
    ...returnUrlProblems(request),
    ...files.violations,
    ...(prefill.ok ? agentProblems(form.version.definition, prefill.answers) : []),
  ];
  if (violations.length > 0 || !prefill.ok) throw invalid(violations);

  const stored = await insertSession(context.database, {
    id: newSessionId(),
    projectId: form.projectId,
    formId: form.id,
    versionId: form.version.id,
    prefill: withoutNulls(prefill.answers),
    metadata: request.metadata ?? {},
    provenance: { prefill: [{ by: 'prefill', ...(keyId !== undefined && { key: keyId }) }], partial: [] },
    expiresIn: lifeOf(request),
    ...(request.returnUrl !== '' && { returnUrl: request.returnUrl }),
    idempotency,
  });
  return sameRequest(idempotency, firstOf(stored));
}

/** Counts what a session is to hold that comes without a key, as it may where keys are not required. */
async function admitValues(
  { keylessStorage }: ServiceContext,
  { projectId }: PublishedForm,
  { prefill, metadata, answers }: SessionValues,
  call: HandlerContext,
): Promise<void> {
  const stranger = strangerAddress(call, projectId);
  if (stranger === undefined) return;
  const bytes = Buffer.byteLength(JSON.stringify([prefill, metadata, answers]));
  await keylessStorage.admit(projectId, stranger, bytes);
}

function firstOf(session: Session): First<Session> {
  return { made: session, fingerprint: session.requestFingerprint };
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

/**
 * What the change needs to know is read and checked first: the embedded database can't be asked within a
 * transaction, and nothing else can be done there meanwhile.
 */
async function changeSession(context: ServiceContext, request: UpdateSessionRequest, call: HandlerContext) {
  const { form, version } = await openSession(
    context,
    await ownSession(context.database, callerOf(call), request.sessionId),
  );
  await admitValues(context, form, request, call);
  const prefill = await version.checkAnswers(request.prefill ?? {}, { root: 'prefill', required: false });
  const answers = await version.checkAnswers(request.answers ?? {}, { required: false });
  await refuseUnknownFiles(context, version, { prefill, answers });

  const { allowPartial } = form.version.definition.settings;
  const session = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, request.sessionId);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const change = toSessionChange(request, locked, {
      prefill,
      answers,
      definition: version.definition,
      allowPartial,
      keyId: callerOf(call).keyId,
    });
    return updateSession(tx, locked.id, change);
  });
  noteSession(context, call, session);
  return { session: sessionToMessage(context, form, session) };
}

/** The event is stored in the same commit. */
async function cancelSession(
  context: ServiceContext,
  { sessionId }: CancelSessionRequest,
  call: HandlerContext,
) {
  const { formId } = await ownSession(context.database, callerOf(call), sessionId);
  const form = await publishedForm(context.forms, formId);
  const session = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, sessionId);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const cancelled = await cancelLockedSession(tx, sessionId);
    const event = sessionEvent('session.cancelled', cancelled, context.now());
    await insertAnnouncedEvents(tx, 'session.cancelled', [event], context.settings.retrySchedule);
    return cancelled;
  });
  noteSession(context, call, session);
  context.notifyWorkers();
  return { session: sessionToMessage(context, form, session) };
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

/** Answers of the wrong shape are left to the change itself, which names all of them. */
async function refuseUnknownFiles(
  context: ServiceContext,
  version: LiveVersion,
  given: Pick<UpdateView, 'prefill' | 'answers'>,
): Promise<void> {
  for (const root of ['prefill', 'answers'] as const) {
    const checked = given[root];
    if (!checked.ok) return;
    const { violations } = await claimUploads(context, version, checked.answers, root);
    if (violations.length > 0) throw invalid(violations);
  }
}

/** The status that a list is asked for; undefined: all. Throws for one that this version does not know. */
function statusFilterOf(status: SessionStatus): Session['status'] | undefined {
  if (status === SessionStatus.UNSPECIFIED) return undefined;
  const known = sessionStatuses.find((name) => sessionStatusOf[name] === status);
  if (known === undefined)
    throw badParameter('status', 'custom', `Expected one of ${sessionStatuses.join(', ')}`);
  return known;
}

type SessionValues = Partial<Pick<UpdateSessionRequest, 'prefill' | 'metadata' | 'answers'>>;
