import { addressKey } from '../../domain/addresses/email-address.ts';
import { notSent } from '../../domain/delivery/mails.ts';
import type { NotifiedFacts } from '../../domain/events/bodies.ts';
import { eventTypes } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import { scopesToNotify } from '../../domain/scopes.ts';
import { rowsOf, toMillisecond } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';
import { insertEvents } from '../events.ts';
import { type Session, sessionColumns, toSession } from '../sessions/session-table.ts';
import { DeliveryEntity } from './deliveries.ts';
import { queueMails } from './delivery-inserts.ts';
import { pendingWhere, tenantOf } from './delivery-queue-table.ts';

/**
 * Stores the events of a session's notifications, and queues the emails and the deliveries to the webhook that it
 * names: the first is due at once, each reminder after its time. Call it in the transaction that stores the session,
 * then notify the workers. `at` is in milliseconds.
 *
 * What is due is sent only if the session is still open then.
 */
export async function queueNotifications(
  tx: Transaction,
  { id: sessionId, projectId, formId, notify, metadata, expiresAt, context }: Session,
  { at, ...facts }: Pick<NotifiedFacts, 'url' | 'project' | 'question'> & { at: number },
): Promise<void> {
  if (notify === null) return;
  const { email, webhookId, message, remindAfter, eventIds } = notify;
  const createdAt = new Date(at);
  const about = {
    sessionId,
    formId,
    ...facts,
    ...(context?.title !== undefined && { title: context.title }),
    ...(message !== undefined && { message }),
    expiresAt: expiresAt.toISOString(),
    metadata,
  };
  const notices = eventIds.map((eventId, reminder) => ({
    eventId,
    reminder,
    id: newId('dlv', at),
    delaySeconds: remindAfter[reminder - 1] ?? 0,
  }));
  await insertEvents(
    tx,
    notices.map(({ eventId, reminder }) => ({
      id: eventId,
      projectId,
      formId,
      sessionId,
      type: 'session.notified',
      body: eventTypes['session.notified'].body(
        { id: eventId, at: createdAt.toISOString() },
        { ...about, reminder },
      ),
      createdAt,
      fannedOutAt: createdAt,
    })),
  );
  if (webhookId !== undefined) await queueForWebhook(tx, webhookId, notices);
  if (email === undefined) return;
  const mails = notices.map(({ eventId, delaySeconds, reminder }) => ({
    id: newId('dlv', at),
    eventId,
    projectId,
    formId,
    keyless: false,
    kind: 'question',
    receiver: addressKey(email),
    mail: { to: email, eventId: null, reminder },
    delaySeconds,
  }));
  await queueMails(tx, mails);
}

async function queueForWebhook(tx: Transaction, webhookId: string, notices: object[]): Promise<void> {
  await tx.execute(
    `insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url, due_at,
       created_at, queued_at)
     select n.id, e.project_id, e.form_id, e.id, w.id, ${tenantOf('w.project_id', 'w.keyless')}, 'webhook', e.type, w.id, w.url,
       ${toMillisecond(`now() + n."delaySeconds" * interval '1 second'`)}, e.created_at, now()
     from json_to_recordset($1::json) as n(id text, "eventId" text, "delaySeconds" double precision)
       join events e on e.id = n."eventId" join webhooks w on w.id = $2`,
    [JSON.stringify(notices), webhookId],
  );
}

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
  if (row === undefined) return { refusal: notSent.gone };
  const session = toSession(row);
  if (session.status !== 'open') return { refusal: notSent.ended };
  if (row.isFormOpen !== true) return { refusal: notSent.closed };
  return row.mayNotify === true ? { session } : { refusal: notSent.keyGone };
}

type Notified = { session: Session } | { refusal: string };

/** What became of the deliveries of events, by event. Those that were removed are missing. */
export async function listEventDeliveries(db: Queries, eventIds: string[]): Promise<EventDelivery[]> {
  if (eventIds.length === 0) return [];
  const of = 'event_id = any($1)';
  const rows = await db.select(
    `select ${notifications.columns} from deliveries where ${of}
     union all ${pendingWhere(of, `event_id, 'pending', null::timestamptz, error`)}`,
    [eventIds],
  );
  return rows.map(notifications.map);
}

const notifications = rowsOf(DeliveryEntity, ['eventId', 'status', 'deliveredAt', 'error']);

/** `error` is why it failed, or what it waits for. */
export type EventDelivery = ReturnType<typeof notifications.map>;
