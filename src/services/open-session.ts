import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { failed, invalid, notFound } from '../domain/errors/failure.ts';
import type { Violation } from '../domain/errors/violations.ts';
import { MAX_REASON_LENGTH } from '../domain/limits/limits.ts';
import { refuseIfEnded } from '../domain/sessions/failures.ts';
import type { Queries, Transaction } from '../store/database/queries.ts';
import { announceEnds } from '../store/deliveries/enqueue.ts';
import type { Session } from '../store/sessions/session-table.ts';
import { endLockedSession, findAnySession, lockSession } from '../store/sessions/sessions.ts';
import type { ServiceContext } from './context.ts';
import { type LiveVersion, type PublishedForm, refuseIfClosed, sessionsForm } from './forms/form-access.ts';
import { requireFound, textProblems } from './request-values.ts';

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

/** What the address of a session's page names: what a visitor has begun opens on the form's own page alone. */
export function pageIdOf({ id, formId, keylessBytes }: Session): string {
  return keylessBytes === null ? id : formId;
}

/**
 * Ends an open session without answers, cancelled or declined; the event of that is stored in the same commit. Throws
 * INVALID for a reason that can't be kept, and FAILED_PRECONDITION if the session has ended, or can't be declined. One
 * that was cancelled before is cancelled again without an event. `keep` runs in the commit.
 */
export async function endSession(
  context: ServiceContext,
  sessionId: string,
  declined?: { reason: string; keep?: (tx: Transaction, session: Session) => Promise<unknown> },
): Promise<Session> {
  const problems = reasonProblems(declined?.reason ?? '');
  if (problems.length > 0) throw invalid(problems);
  const type = declined === undefined ? 'session.cancelled' : 'session.declined';
  const ended = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, sessionId);
    if (locked === null) throw notFound('session');
    if (declined === undefined && locked.status === 'cancelled') return locked;
    refuseIfEnded(locked);
    if (declined !== undefined && !locked.allowDecline) {
      throw failed(Reason.CONFLICT, "This session can't be declined: it was made without allow_decline");
    }
    const session = await endLockedSession(tx, sessionId, declined);
    const schedule = context.settings.retrySchedule;
    await announceEnds(tx, type, [session], { at: context.now(), schedule });
    await declined?.keep?.(tx, session);
    return session;
  });
  context.notifyWorkers();
  return ended;
}

/** What is wrong with the words of a person who declines. */
function reasonProblems(reason: string): Violation[] {
  return textProblems(reason, 'reason', { max: MAX_REASON_LENGTH });
}

export type OpenSession = { form: PublishedForm; version: LiveVersion };
