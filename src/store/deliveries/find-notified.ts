import type { FinalCause } from '../../domain/delivery/causes.ts';
import { scopesToNotify } from '../../domain/scopes.ts';
import type { Queries } from '../database/queries.ts';
import { type Session, sessionColumns, toSession } from '../sessions/session-table.ts';

/**
 * The session that an event notifies somebody of, or why nobody is notified of it any more, by email or by webhook. One
 * that ends while the attempt is under way may still be notified of. Access tokens live too short to be asked for.
 */
export async function findNotified(db: Queries, eventId: string): Promise<Notified> {
  const [row] = await db.select(
    `select ${sessionColumns},
       exists (select from forms f where f.id = sessions.form_id and f.status = 'published' and f.closed_at is null
         and f.deleted_at is null) as "isFormOpen",
       notify->>'keyId' like 'oauth:%' or exists (select from api_keys k where k.id = notify->>'keyId'
         and (k.expires_at is null or k.expires_at > now()) and k.scopes && '{${scopesToNotify.join()}}'::text[])
         as "mayNotify"
     from sessions where id = (select session_id from events where id = $1) and notify is not null`,
    [eventId],
  );
  if (row === undefined) return { refusal: 'session_gone' };
  const session = toSession(row);
  if (session.status !== 'open') return { refusal: 'session_ended' };
  if (row.isFormOpen !== true) return { refusal: 'form_closed' };
  return row.mayNotify === true ? { session } : { refusal: 'key_gone' };
}

type Notified = { session: Session } | { refusal: FinalCause };
