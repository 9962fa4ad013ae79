import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { SessionContextSchema } from '../../../gen/headlessforms/v1/session_context_pb.js';
import { SessionOutcome, SessionSchema } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { currentAnswersOf } from '../../domain/answers/provenance.ts';
import { enumValue } from '../../domain/enums.ts';
import { messageFrom, rowToMessage } from '../../domain/messages.ts';
import { holds } from '../../domain/scopes.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Queries } from '../../store/database/queries.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, sessionsForm } from '../forms/form-access.ts';
import { pageIdOf } from '../open-session.ts';
import { provenanceToMessage, readDetail, wholeSubmission } from '../submissions/submission-proto.ts';
import { describeUnclaimed } from '../uploads/upload-claims.ts';
import { noteSession } from './find-session.ts';
import { type Notifications, notificationsOf } from './notify.ts';

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
