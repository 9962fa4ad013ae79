import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { SessionContextSchema } from '../../../gen/headlessforms/v1/session_context_pb.js';
import {
  SessionOutcome,
  SessionSchema,
  type UpdateSessionRequest,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { type Answers, mergeAnswers } from '../../domain/answers/answers.ts';
import { currentAnswersOf } from '../../domain/answers/provenance.ts';
import { enumValue } from '../../domain/enums.ts';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { messageFrom, rowToMessage } from '../../domain/messages.ts';
import { holds } from '../../domain/scopes.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import type { Queries } from '../../store/database/database.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findAnySession, findSession } from '../../store/sessions/sessions.ts';
import { findSubmission } from '../../store/submissions/submissions.ts';
import { sessionName } from '../audit/audit.ts';
import type { ServiceContext } from '../context.ts';
import { type LiveVersion, type PublishedForm, refuseIfClosed, sessionsForm } from '../forms/form-access.ts';
import { type Reservation, strangerAddress } from '../limits/keyless-storage.ts';
import { requireFound } from '../request-values.ts';
import { provenanceToMessage, readDetail, wholeSubmission } from '../submissions/submission-proto.ts';
import { describeUnclaimed } from '../uploads/upload-claims.ts';
import { type Notifications, notificationsOf } from './notify.ts';

/**
 * A session of the caller's project. Throws NOT_FOUND, to callers without a key also for one that a visitor has begun,
 * and CODE_NEEDED to them where the session asks its respondent for a code.
 */
export async function projectSession(
  { database, settings }: Pick<ServiceContext, 'database' | 'settings'>,
  { projectId, keyId }: Caller,
  sessionId: string,
): Promise<Session> {
  const session = await requireFound('sess', sessionId, () => findSession(database, projectId, sessionId));
  if (keyId === undefined && session.keylessBytes !== null) throw notFound('session');
  if (keyId === undefined && session.respondent !== null) throw codeNeeded(settings, sessionId);
  return session;
}

/** Records what a call has done with a session. */
export function noteSession({ audit }: ServiceContext, call: HandlerContext, { id, formId }: Session): void {
  audit.note(call, { resource: sessionName(id), formId });
}

/** A session by its id alone, for anyone who knows it. Throws NOT_FOUND. */
export function anySession(db: Queries, sessionId: string): Promise<Session> {
  return requireFound('sess', sessionId, () => findAnySession(db, sessionId));
}

/**
 * The form of a session that takes changes, and the version that the session began with.
 *
 * Throws `FAILED_PRECONDITION` if it has ended, or its form is archived or was closed by its owner.
 */
export async function openSession(context: ServiceContext, session: Session): Promise<OpenSession> {
  refuseIfEnded(session);
  const form = await sessionsForm(context.forms, session.formId);
  if (form.status === 'archived' || form.closedAt !== null) refuseIfClosed(form, context.now());
  return { form, version: await context.forms.version(session.versionId) };
}

/** Throws `FAILED_PRECONDITION` if the session had ended when it was read. */
export function refuseIfEnded(session: Session): void {
  if (session.status === 'submitted') throw alreadySubmitted(session.submissionId ?? '');
  if (session.status === 'expired') throw expired();
  if (session.status === 'cancelled') throw cancelled();
  if (session.status === 'declined') throw declined();
}

/** The session has a submission already. */
export function alreadySubmitted(submissionId: string) {
  return failed(Reason.CONFLICT, 'This session has already been submitted', { submissionId });
}

/** The respondent's mailbox has answered the form, which takes one submission of each. */
export function alreadyAnswered() {
  return failed(Reason.CONFLICT, 'This mailbox has already answered the form', { nextCall: NextCall.NONE });
}

/** Only the page of a session or form takes the answers: it asks for a code first. */
export function codeNeeded({ hostedUrl }: Pick<ServiceContext['settings'], 'hostedUrl'>, pageId: string) {
  const pageUrl = `${hostedUrl}/f/${pageId}`;
  const message = `Only the page accepts answers, after a code that it emails to the respondent: ${pageUrl}`;
  return failed(Reason.CODE_NEEDED, message, { pageUrl });
}

/** What the address of a session's page names: what a visitor has begun opens on the form's own page alone. */
export function pageIdOf({ id, formId, keylessBytes }: Session): string {
  return keylessBytes === null ? id : formId;
}

/** The session's time is over. */
export function expired() {
  return failed(Reason.EXPIRED, 'This session has expired');
}

/** Its maker has ended the session. */
export function cancelled() {
  return failed(Reason.CANCELLED, 'This session has been cancelled');
}

/** The person has declined to answer. */
export function declined() {
  return failed(Reason.DECLINED, 'The person has declined to answer in this session');
}

/**
 * Reserves room for what a session is to hold that comes without a key, as it may where keys are not required;
 * undefined for a call with one.
 */
export async function reserveValues(
  { keylessStorage }: ServiceContext,
  { projectId }: PublishedForm,
  { prefill, metadata, answers }: SessionValues,
  call: HandlerContext,
): Promise<Reservation | undefined> {
  const stranger = strangerAddress(call, projectId);
  if (stranger === undefined) return undefined;
  const room = keylessStorage.reserve(projectId, stranger);
  await room.add(Buffer.byteLength(JSON.stringify([prefill, metadata, answers])));
  return room;
}

/** The answers that a submission begins with: what was saved, over the prefill. */
export function savedAnswers({ prefill, partialAnswers }: Visit): Answers {
  return mergeAnswers(prefill, partialAnswers ?? {});
}

/** What somebody on a page begins with: a session, or without one (null) what the page's address fills in. */
export type Visit = Pick<
  Session,
  'prefill' | 'partialAnswers' | 'provenance' | 'metadata' | 'createdAt' | 'readAt'
> &
  Partial<Pick<Session, 'callback' | 'context'>> & { id: string | null };

export type OpenSession = { form: PublishedForm; version: LiveVersion };

type SessionValues = Partial<Pick<UpdateSessionRequest, 'prefill' | 'metadata' | 'answers'>>;

/** A session as its maker sees it, with what became of its notifications. */
export async function describeSession(
  context: Pick<ServiceContext, 'settings'> & { database: Queries },
  form: PublishedForm,
  session: Session,
) {
  const notifications = await notificationsOf(context.database, [session]);
  return sessionToMessage(context, form, session, notifications);
}

/** The same of sessions of one form. */
export async function describeSessions(
  context: Pick<ServiceContext, 'settings' | 'database'>,
  form: PublishedForm,
  sessions: Session[],
) {
  const notifications = await notificationsOf(context.database, sessions);
  return sessions.map((session) => sessionToMessage(context, form, session, notifications));
}

/** Partial answers are shown only while the form allows them. */
function sessionToMessage(
  { settings }: Pick<ServiceContext, 'settings'>,
  form: PublishedForm,
  session: Session,
  notifications: Notifications,
): MessageInitShape<typeof SessionSchema> {
  const notification = notifications.get(session.id);
  const { allowPartial } = form.version.definition.settings;
  return rowToMessage(SessionSchema, session, {
    formVersionId: session.versionId,
    url: `${settings.hostedUrl}/f/${pageIdOf(session)}`,
    ...(session.context !== null && { context: messageFrom(SessionContextSchema, session.context) }),
    ...(session.respondent !== null && { respondent: { email: session.respondent.email } }),
    outcome: enumValue(SessionOutcome, session.status === 'open' ? undefined : session.status),
    reason: session.declineReason ?? '',
    ...(session.callback !== null && {
      callback: {
        urlHost: new URL(session.callback.url).host,
        answers: session.callback.keyId !== undefined,
      },
    }),
    ...(notification !== undefined && { notification }),
    partialAnswers: allowPartial ? (session.partialAnswers ?? {}) : undefined,
    provenance: provenanceToMessage(
      currentAnswersOf(allowPartial ? session : { ...session, partialAnswers: null }).provenance,
    ),
  });
}

/**
 * What a call that reads a session answers: with the submission that ended it, if the caller may read answers and it
 * was not deleted since. Recorded here.
 */
export async function describeRead(context: ServiceContext, call: HandlerContext, session: Session) {
  noteSession(context, call, session);
  const form = await sessionsForm(context.forms, session.formId);
  const message = await describeSession(context, form, session);
  const version = await context.forms.version(session.versionId);
  const { partialAnswers: saved } = message;
  if (saved !== undefined) message.partialAnswers = await describeUnclaimed(context, version, saved);
  const { projectId, scopes } = callerOf(call);
  const id = session.submissionId;
  if (id === null || !holds(scopes, 'submissions:read')) return { session: message };
  const submission = await findSubmission(context.database, projectId, id);
  if (submission === null) return { session: message };
  const whole = wholeSubmission(submission, session, version.definition);
  context.audit.note(call, {
    action: 'submission.read',
    resource: id,
    formId: form.id,
    ...readDetail(whole),
  });
  return { session: message, submission: whole };
}
