import type { ServiceImpl } from '@connectrpc/connect';
import type {
  CreateSessionRequest,
  GetSessionRequest,
  SessionsService,
  SubmitSessionRequest,
  UpdateSessionRequest,
} from '../../../gen/forms/v1/sessions_pb.js';
import { mergeAnswers } from '../../domain/answers/answers.ts';
import { isId, newSessionId } from '../../domain/ids.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import {
  findSession,
  insertSession,
  lockSession,
  type Session,
  updateSession,
} from '../../store/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, publishedForm, refuseIfShut } from '../forms/form-gate.ts';
import type { LiveVersion } from '../forms/form-reader.ts';
import {
  alreadySubmitted,
  expired,
  newSubmission,
  storeSubmission,
} from '../submissions/submission-entry.ts';
import { submissionToMessage } from '../submissions/submission-message.ts';
import { checkSize } from '../submissions/submission-request.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { type SessionMessage, sessionToMessage } from './session-message.ts';
import {
  changeOf,
  DEFAULT_LIFE,
  durationProblems,
  metadataProblems,
  withoutNulls,
} from './session-request.ts';

/** Makes sessions for people or agents to fill, and follows them. */
export function sessionsService(context: ServiceContext): ServiceImpl<typeof SessionsService> {
  return {
    createSession: (request, call) => createSession(context, request, callerOf(call)),
    getSession: (request, call) => getSession(context, request, callerOf(call)),
    updateSession: (request, call) => changeSession(context, request, callerOf(call)),
    submitSession: (request, call) => submitSession(context, request, callerOf(call)),
  };
}

async function createSession(context: ServiceContext, request: CreateSessionRequest, caller: Caller) {
  const form = await publishedForm(context.forms, request.formId, caller.projectId);
  if (form.status !== 'published') throw notFound('form');
  const { compiled, definition } = form.version;
  const prefill = compiled.checkAnswers(request.prefill ?? {}, { root: 'prefill', required: false });
  const files = prefill.ok
    ? await claimUploads(context, { id: form.id, definition }, prefill.answers, 'prefill')
    : prefill;
  const violations = [
    ...durationProblems(request.expiresIn, 'expires_in'),
    ...metadataProblems(request.metadata),
    ...files.violations,
  ];
  if (violations.length > 0 || !prefill.ok) throw invalid(violations);

  const session = await insertSession(context.database, {
    id: newSessionId(),
    projectId: form.projectId,
    formId: form.id,
    versionId: form.version.id,
    prefill: withoutNulls(prefill.answers),
    metadata: request.metadata ?? {},
    expiresIn: Number(request.expiresIn?.seconds ?? DEFAULT_LIFE),
  });
  return { session: told(context, form, session) };
}

async function getSession(context: ServiceContext, { sessionId }: GetSessionRequest, caller: Caller) {
  const session = await ownSession(context, sessionId, caller);
  return { session: told(context, await publishedForm(context.forms, session.formId), session) };
}

/** What the change needs to know is read first: the embedded database can't be asked within a transaction. */
async function changeSession(context: ServiceContext, request: UpdateSessionRequest, caller: Caller) {
  const { form, version } = await openSession(context, await ownSession(context, request.sessionId, caller));
  await refuseUnknownFiles(context, form, version, request);

  const { allowPartial } = form.version.definition.settings;
  const session = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, request.sessionId);
    if (locked === null) throw notFound('session');
    refuseIfOver(locked);
    return updateSession(tx, locked.id, changeOf(request, locked, { version, allowPartial }));
  });
  return { session: told(context, form, session) };
}

async function submitSession(
  context: ServiceContext,
  { sessionId, answers = {} }: SubmitSessionRequest,
  caller: Caller,
) {
  const session = await ownSession(context, sessionId, caller);
  const { form, version } = await openSession(context, session);
  const now = context.now();
  refuseIfShut(form, now);
  checkSize(form, answers);
  const base = mergeAnswers(session.prefill, session.partialAnswers ?? {});
  const checked = version.compiled.checkAnswers(answers, { base });
  if (!checked.ok) throw invalid(checked.violations);
  const claimed = await claimUploads(
    context,
    { id: form.id, definition: version.definition },
    checked.answers,
  );
  if (claimed.violations.length > 0) throw invalid(claimed.violations);

  const row = newSubmission({ form, version, session, ...claimed, source: 'api' }, now);
  const submissionId = await storeSubmission(context, form, row);
  const submitted: Session = { ...session, status: 'submitted', submittedAt: row.createdAt, submissionId };
  return { submission: submissionToMessage(row), session: told(context, form, submitted) };
}

/**
 * What a session that takes changes is of: its form, and the version it began with.
 *
 * Throws `FAILED_PRECONDITION` if it is submitted or expired, or its form archived.
 */
export async function openSession(context: ServiceContext, session: Session): Promise<OpenSession> {
  refuseIfOver(session);
  const form = await publishedForm(context.forms, session.formId);
  if (form.status === 'archived') refuseIfShut(form, context.now());
  return { form, version: await context.forms.version(session.versionId) };
}

/** Throws if the session was submitted or had expired when it was read. */
export function refuseIfOver(session: Session): void {
  if (session.status === 'submitted') throw alreadySubmitted(session.submissionId ?? '');
  if (session.status === 'expired') throw expired();
}

async function ownSession(context: ServiceContext, sessionId: string, caller: Caller): Promise<Session> {
  const session = isId('sess', sessionId)
    ? await findSession(context.database, caller.projectId, sessionId)
    : null;
  if (session === null) throw notFound('session');
  return session;
}

/** Answers that do not even have the right shape are left to the change itself, which names them all. */
async function refuseUnknownFiles(
  context: ServiceContext,
  form: PublishedForm,
  { definition, compiled }: LiveVersion,
  request: UpdateSessionRequest,
): Promise<void> {
  for (const root of ['prefill', 'answers'] as const) {
    const checked = compiled.checkAnswers(request[root] ?? {}, { root, required: false });
    if (!checked.ok) return;
    const { violations } = await claimUploads(context, { id: form.id, definition }, checked.answers, root);
    if (violations.length > 0) throw invalid(violations);
  }
}

function told(context: ServiceContext, form: PublishedForm, session: Session): SessionMessage {
  const { allowPartial } = form.version.definition.settings;
  return sessionToMessage(session, { hostedUrl: context.settings.hostedUrl, allowPartial });
}

export type OpenSession = { form: PublishedForm; version: LiveVersion };
