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
export function sessionsService(service: ServiceContext): ServiceImpl<typeof SessionsService> {
  return {
    createSession: (request, context) => createSession(service, request, callerOf(context)),
    getSession: (request, context) => getSession(service, request, callerOf(context)),
    updateSession: (request, context) => changeSession(service, request, callerOf(context)),
    submitSession: (request, context) => submitSession(service, request, callerOf(context)),
  };
}

async function createSession(service: ServiceContext, request: CreateSessionRequest, caller: Caller) {
  const form = await publishedForm(service.forms, request.formId, caller.projectId);
  if (form.status !== 'published') throw notFound('form');
  const { compiled, definition } = form.version;
  const prefill = compiled.checkAnswers(request.prefill ?? {}, { root: 'prefill', required: false });
  const files = prefill.ok
    ? await claimUploads(service, { id: form.id, definition }, prefill.answers, 'prefill')
    : prefill;
  const violations = [
    ...durationProblems(request.expiresIn, 'expires_in'),
    ...metadataProblems(request.metadata),
    ...files.violations,
  ];
  if (violations.length > 0 || !prefill.ok) throw invalid(violations);

  const session = await insertSession(service.database, {
    id: newSessionId(),
    projectId: form.projectId,
    formId: form.id,
    versionId: form.version.id,
    prefill: withoutNulls(prefill.answers),
    metadata: request.metadata ?? {},
    expiresIn: Number(request.expiresIn?.seconds ?? DEFAULT_LIFE),
  });
  return { session: told(service, form, session) };
}

async function getSession(service: ServiceContext, { sessionId }: GetSessionRequest, caller: Caller) {
  const session = await ownSession(service, sessionId, caller);
  return { session: told(service, await publishedForm(service.forms, session.formId), session) };
}

/** What the change needs to know is read first: the embedded database can't be asked within a transaction. */
async function changeSession(service: ServiceContext, request: UpdateSessionRequest, caller: Caller) {
  const { form, version } = await openSession(service, await ownSession(service, request.sessionId, caller));
  await refuseUnknownFiles(service, form, version, request);

  const { allowPartial } = form.version.definition.settings;
  const session = await service.database.transaction(async (tx) => {
    const locked = await lockSession(tx, request.sessionId);
    if (locked === null) throw notFound('session');
    refuseIfOver(locked);
    return updateSession(tx, locked.id, changeOf(request, locked, { version, allowPartial }));
  });
  return { session: told(service, form, session) };
}

async function submitSession(
  service: ServiceContext,
  { sessionId, answers = {} }: SubmitSessionRequest,
  caller: Caller,
) {
  const session = await ownSession(service, sessionId, caller);
  const { form, version } = await openSession(service, session);
  const now = service.now();
  refuseIfShut(form, now);
  checkSize(form, answers);
  const base = mergeAnswers(session.prefill, session.partialAnswers ?? {});
  const checked = version.compiled.checkAnswers(answers, { base });
  if (!checked.ok) throw invalid(checked.violations);
  const claimed = await claimUploads(
    service,
    { id: form.id, definition: version.definition },
    checked.answers,
  );
  if (claimed.violations.length > 0) throw invalid(claimed.violations);

  const row = newSubmission({ form, version, session, ...claimed, source: 'api' }, now);
  const submissionId = await storeSubmission(service, form, row);
  const submitted: Session = { ...session, status: 'submitted', submittedAt: row.createdAt, submissionId };
  return { submission: submissionToMessage(row), session: told(service, form, submitted) };
}

/**
 * What a session that takes changes is of: its form, and the version it began with.
 *
 * Throws `FAILED_PRECONDITION` if it is submitted or expired, or its form archived.
 */
export async function openSession(service: ServiceContext, session: Session): Promise<OpenSession> {
  refuseIfOver(session);
  const form = await publishedForm(service.forms, session.formId);
  if (form.status === 'archived') refuseIfShut(form, service.now());
  return { form, version: await service.forms.version(session.versionId) };
}

/** Throws if the session was submitted or had expired when it was read. */
export function refuseIfOver(session: Session): void {
  if (session.status === 'submitted') throw alreadySubmitted(session.submissionId ?? '');
  if (session.status === 'expired') throw expired();
}

async function ownSession(service: ServiceContext, sessionId: string, caller: Caller): Promise<Session> {
  const session = isId('sess', sessionId)
    ? await findSession(service.database, caller.projectId, sessionId)
    : null;
  if (session === null) throw notFound('session');
  return session;
}

/** Answers that do not even have the right shape are left to the change itself, which names them all. */
async function refuseUnknownFiles(
  service: ServiceContext,
  form: PublishedForm,
  { definition, compiled }: LiveVersion,
  request: UpdateSessionRequest,
): Promise<void> {
  for (const root of ['prefill', 'answers'] as const) {
    const checked = compiled.checkAnswers(request[root] ?? {}, { root, required: false });
    if (!checked.ok) return;
    const { violations } = await claimUploads(service, { id: form.id, definition }, checked.answers, root);
    if (violations.length > 0) throw invalid(violations);
  }
}

function told(service: ServiceContext, form: PublishedForm, session: Session): SessionMessage {
  const { allowPartial } = form.version.definition.settings;
  return sessionToMessage(session, { hostedUrl: service.settings.hostedUrl, allowPartial });
}

export type OpenSession = { form: PublishedForm; version: LiveVersion };
