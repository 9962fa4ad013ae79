import { addressKey } from '../../domain/addresses/email-address.ts';
import { because } from '../../domain/delivery/causes.ts';
import type { NotifiedFacts } from '../../domain/events/bodies.ts';
import { eventTypes } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';
import { insertEvents } from '../events.ts';
import type { Session } from '../sessions/session-table.ts';
import { tenantOf } from './fairness.ts';

/**
 * Marks events as fanned out and queues their emails, in one statement.
 *
 * Events that another process has fanned out meanwhile are left out. So are deliveries with `oncePerDay`
 * if the form had one for that mailbox within 24 hours; a call may hold one such delivery for each form and
 * mailbox.
 */
export async function fanOutEvents(db: Queries, eventIds: string[], mails: NewMail[]): Promise<void> {
  const [since] = mails.some(({ oncePerDay }) => oncePerDay !== undefined)
    ? await db.select(`select now() - interval '24 hours' as since`)
    : [];
  await db.execute(
    `with taken as (
       update events set fanned_out_at = now()
       where id in (
         select id from events where id = any($1::text[]) and fanned_out_at is null
         order by id for update skip locked
       )
       returning id
     ),
     given as materialized (
       select g.* from json_to_recordset($2::json) as g(${givenColumns}) join taken on taken.id = g."eventId"
     ),
     answered as (
       insert into autoresponses as a (form_id, address, sent_at)
       select "formId", "oncePerDay", now() from given where "oncePerDay" is not null
       on conflict (form_id, address) do update set sent_at = excluded.sent_at
         where a.sent_at <= $3
       returning form_id, address
     )
     ${insertGiven}
     where g."oncePerDay" is null
       or exists (select from answered where answered.form_id = g."formId" and answered.address = g."oncePerDay")`,
    [eventIds, JSON.stringify(mails), since?.since ?? null],
  );
}

/**
 * Marks an event as fanned out whose emails can't be made, and puts a failed delivery into the log in place of
 * them, where anyone who reads the form's deliveries finds the reason.
 */
export async function parkEvent(db: Queries, { id, eventId, kind }: ParkedMails): Promise<void> {
  const { cause, error } = because('mail_not_made');
  await db.execute(
    `with taken as (
       update events set fanned_out_at = now() where id = $2 and fanned_out_at is null
       returning id, project_id, form_id, created_at
     )
     insert into deliveries (id, project_id, form_id, event_id, channel, kind, receiver, status, attempt_count,
       created_at, error, cause)
     select $1, project_id, form_id, id, 'mail', $3, '', 'failed', 0, created_at, $4, $5 from taken`,
    [id, eventId, kind, error, cause],
  );
}

/** Queues emails without an event. */
export async function queueMails(db: Queries, mails: NewMail[]): Promise<void> {
  if (mails.length === 0) return;
  await db.execute(
    `with given as materialized (select * from json_to_recordset($1::json) as g(${givenColumns})) ${insertGiven}`,
    [JSON.stringify(mails)],
  );
}

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
  const mails = notices.map(({ reminder, ...notice }) => ({
    ...notice,
    id: newId('dlv', at),
    projectId,
    formId,
    keyless: false,
    kind: 'question',
    receiver: addressKey(email),
    mail: { to: email, eventId: null, reminder },
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

/** As `NewMail` has them. */
const givenColumns = `id text, "eventId" text, "projectId" text, "formId" text, keyless boolean, kind text, receiver text,
  mail json, "delaySeconds" double precision, "oncePerDay" text`;

const insertGiven = `insert into delivery_queue
    (id, project_id, form_id, event_id, share, channel, kind, receiver, mail, due_at, created_at, queued_at)
  select g.id, g."projectId", g."formId", g."eventId", ${tenantOf('g."projectId"', 'g.keyless')}, 'mail', g.kind, g.receiver,
    g.mail, ${toMillisecond(`now() + g."delaySeconds" * interval '1 second'`)}, now(), now()
  from given g`;

/** An email to queue. */
export type NewMail = {
  id: string;
  eventId: string | null;
  projectId: string;
  formId: string;
  /** Whether it is about a form that was made without a key. */
  keyless: boolean;
  kind: string;
  /** The address, as `addressKey` gives it. */
  receiver: string;
  mail: object;
  delaySeconds: number;
  /** A mailbox to which the form makes one such delivery in 24 hours. */
  oncePerDay?: string;
};

/** The emails of an event: `id` is that of the delivery in the log. */
export type ParkedMails = { id: string; eventId: string; kind: string };
