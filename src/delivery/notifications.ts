import { notSent } from '../domain/delivery/notifications.ts';
import type { Queries } from '../store/database/database.ts';
import { findNotifiedSession } from '../store/deliveries/session-notifications.ts';
import type { Session } from '../store/sessions/session-table.ts';

/**
 * The session that an event notifies somebody of, or why nobody is notified of it any more, by mail or by webhook. One
 * that ends while the attempt is under way may still be notified of.
 */
export async function findNotified(db: Queries, eventId: string): Promise<Notified> {
  const found = await findNotifiedSession(db, eventId);
  if (found === null) return { refusal: notSent.gone };
  const { session, isFormOpen, mayNotify } = found;
  if (session.status !== 'open') return { refusal: notSent.ended };
  if (!isFormOpen) return { refusal: notSent.closed };
  return mayNotify ? { session } : { refusal: notSent.keyGone };
}

type Notified = { session: Session } | { refusal: string };
