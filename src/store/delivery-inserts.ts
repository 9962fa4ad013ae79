import { toMillisecond } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/**
 * Marks events as fanned out and inserts their deliveries, in one statement.
 *
 * Events that another process has fanned out meanwhile are left out. So are deliveries with `oncePerDay`
 * if the form had one for that mailbox within 24 hours; a call may hold one such delivery for each form and
 * mailbox.
 */
export async function fanOutEvents(
  db: Queries,
  eventIds: string[],
  deliveries: NewDelivery[],
): Promise<void> {
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
       select g.* from json_to_recordset($2::json) as g(${givenColumns}) join taken on taken.id = g.event_id
     ),
     answered as (
       insert into autoresponses as a (form_id, address, sent_at)
       select form_id, once_per_day, now() from given where once_per_day is not null
       on conflict (form_id, address) do update set sent_at = excluded.sent_at
         where a.sent_at <= now() - interval '24 hours'
       returning form_id, address
     )
     ${insertGiven}
     where g.once_per_day is null
       or exists (select from answered where answered.form_id = g.form_id and answered.address = g.once_per_day)`,
    [eventIds, JSON.stringify(deliveries.map(columnsOf))],
  );
}

/** Inserts deliveries of mails without an event. */
export async function insertDeliveries(db: Queries, deliveries: NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  await db.execute(
    `with given as materialized (select * from json_to_recordset($1::json) as g(${givenColumns})) ${insertGiven}`,
    [JSON.stringify(deliveries.map(columnsOf))],
  );
}

const givenColumns = `id text, event_id text, project_id text, form_id text, webhook_id text, submission_id text,
  channel text, kind text, receiver text, url text, mail json, delay_seconds double precision,
  once_per_day text`;

const insertGiven = `insert into deliveries
    (id, project_id, form_id, event_id, webhook_id, submission_id, channel, kind, receiver, url, mail,
     status, due_at, created_at)
  select g.id, g.project_id, g.form_id, g.event_id, g.webhook_id, g.submission_id, g.channel, g.kind, g.receiver,
    g.url, g.mail, 'pending', ${toMillisecond(`now() + g.delay_seconds * interval '1 second'`)}, now()
  from given g`;

function columnsOf(delivery: NewDelivery) {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    project_id: delivery.projectId,
    form_id: delivery.formId,
    webhook_id: delivery.webhook?.id,
    submission_id: delivery.submissionId,
    channel: delivery.webhook === undefined ? 'mail' : 'webhook',
    kind: delivery.kind,
    receiver: delivery.receiver,
    url: delivery.webhook?.url,
    mail: delivery.mail,
    delay_seconds: delivery.delaySeconds,
    once_per_day: delivery.oncePerDay,
  };
}

/** A delivery to insert: to a webhook, or else by mail. */
export type NewDelivery = {
  id: string;
  eventId: string | null;
  projectId: string;
  formId: string;
  submissionId: string | null;
  kind: string;
  receiver: string;
  webhook?: { id: string; url: string };
  mail?: object;
  delaySeconds: number;
  /** A mailbox to which the form makes one such delivery in 24 hours. */
  oncePerDay?: string;
};
