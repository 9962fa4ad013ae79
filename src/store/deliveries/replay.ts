import { effectsOf, eventTypes } from '../../domain/events/index.ts';
import { demoFormId, instantOfId, KEYLESS_CREATOR, smallestIdAt } from '../../domain/ids.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Queries, Row, Transactions } from '../database/queries.ts';
import { createSlices } from '../database/slices.ts';
import { closedAt, type Webhook } from '../webhooks/webhooks.ts';
import { isWanted, newDeliveryId } from './enqueue.ts';
import { tenantOf } from './fairness.ts';

/**
 * Takes a finished delivery to a webhook, or email of a submission, back into the queue, due at once and at the
 * beginning of the schedule. Event id, body, URL and address stay; an email is written anew when it is sent, to whom
 * it may go then. False if it is pending, or another email, or its webhook, form or event is gone.
 */
export async function replayDelivery(
  db: Queries,
  { projectId, id }: { projectId: string; id: string },
): Promise<boolean> {
  const [row] = await db.execute(
    replayOf(`select id from deliveries where id = $1 and project_id = $2 and ${replayable} for update`),
    [id, projectId],
  );
  return Number(row?.count) > 0;
}

/**
 * Takes the failed deliveries of a webhook, or the failed emails of a form's submissions, back into the queue, those
 * made in `[createdAfter, createdBefore)`, oldest first and at most `MAX_REPLAYED`. With `missedBy` it queues the events
 * of that time that a webhook has no delivery of, and looks at no more than `MAX_SEEN`.
 *
 * Returns how many, and from when on there may be more. Works in slices, so that no lock is held for long. Once
 * `signal` is aborted no further one begins.
 */
export async function replayDeliveries(
  database: Transactions,
  range: ReplayRange,
  signal?: AbortSignal,
): Promise<{ count: number; next?: Date }> {
  const { createdAfter, createdBefore } = range;
  const [prefix, take] =
    'missedBy' in range ? (['evt', missedOf(range)] as const) : (['dlv', failedOf(range)] as const);
  const end = smallestIdAt(prefix, createdBefore?.getTime() ?? Number.POSITIVE_INFINITY);
  const slice = createSlices(database, REPLAY_GROUP);
  let from = smallestIdAt(prefix, createdAfter?.getTime() ?? 0);
  for (let count = 0, seen = 0; ; ) {
    signal?.throwIfAborted();
    const { row, limit } = await slice(async (tx, most) => {
      const limit = Math.min(most, MAX_REPLAYED - count);
      return { row: (await take(tx, [from, end, limit]))[0], limit };
    });
    count += Number(row?.count);
    seen += Number(row?.seen);
    if (Number(row?.seen) < limit) return { count };
    from = String(row?.last);
    if (count >= MAX_REPLAYED || seen >= MAX_SEEN) return { count, next: new Date(instantOfId(from)) };
  }
}

function failedOf(range: { webhookId: string } | { formId: string }): Take {
  const [condition, of] =
    'webhookId' in range
      ? ['webhook_id = $1', range.webhookId]
      : [`form_id = $1 and channel = 'mail'`, range.formId];
  const sql = replayOf(
    `select id from deliveries
     where ${condition} and id >= $2 and id < $3 and status = 'failed' and ${replayable}
     order by id limit $4 for update skip locked`,
  );
  return (tx, bounds) => tx.execute(sql, [of, ...bounds]);
}

/** Of the types that the webhook registers now. */
function missedOf({ missedBy: { id, projectId, events } }: { missedBy: Webhook }): Take {
  const types = Object.keys(eventTypes).filter((type) => events.includes(effectsOf(type).webhooks));
  return async (tx, bounds) => {
    // Calls for the same webhook, in any process, take turns: none queues an event that another has just queued.
    await tx.select('select id from webhooks where id = $1 for update', [id]);
    return tx.execute(QUEUE_MISSED, [id, ...bounds, projectId, types]);
  };
}

/** Attempts that the log kept with the delivery become rows, since further ones follow. */
function replayOf(ids: string): string {
  return queueTaken(`chosen as materialized (${ids}),
    taken as (delete from deliveries where id = any(array(select id from chosen)) returning *),
    kept as (
      insert into attempts
        (id, delivery_id, number, status, response_status, error, response_body, duration_ms, started_at)
      select attempt_id, id, attempt_count, 'delivered', response_status, null, response_body, duration_ms,
        last_attempt_at
      from taken where attempt_id is not null
    )`);
}

/**
 * Queues what is `taken` by common table expressions. A caller who replays means the receiver to be called: its circuit
 * breaker is closed. Returns the number of it, and that of the rows of the table `looked`, with the last id of those.
 */
function queueTaken(tables: string, looked = 'queued'): string {
  return `with ${tables},
    closed as (
      update webhooks set failures_in_row = 0, open_until = ${closedAt('open_until')}
      where id in (select webhook_id from taken) and failures_in_row > 0
    ),
    queued as (
      insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
        mail, attempt_count, step, due_at, created_at, queued_at, last_attempt_at, response_status, postponed)
      select t.id, t.project_id, t.form_id, t.event_id, t.webhook_id,
        ${tenantOf('t.project_id', `coalesce(f.created_by = '${KEYLESS_CREATOR}', w.keyless)`)}, t.channel, t.kind, t.receiver, t.url,
        case when t.channel = 'mail' then json_build_object('to', t.receiver, 'eventId', t.event_id) end,
        t.attempt_count, 0, ${toMillisecond('now()')}, t.created_at, now(), t.last_attempt_at, t.response_status, false
      from taken t left join webhooks w on w.id = t.webhook_id left join forms f on f.id = t.form_id
      returning id
    )
    select (select count(*) from queued) as count, (select count(*) from ${looked}) as seen,
      (select max(id) from ${looked}) as last`;
}

/**
 * Only `submission.deleted` outlives its form. Deliveries are looked up in arrays: a planner without statistics would go
 * through all of the webhook for each event. Those with a first lease are read once.
 */
const QUEUE_MISSED = queueTaken(
  `looked as materialized (
     select id from events where project_id = $5 and id > $2 and id < $3 order by id limit $4
   ), taken as materialized (
     select ${newDeliveryId('e.id')} as id, e.project_id, e.form_id, e.id as event_id, w.id as webhook_id,
       'webhook' as channel, e.type as kind, w.id as receiver, w.url, 0 as attempt_count, e.created_at,
       null::timestamptz as last_attempt_at, null::int as response_status
     from events e join webhooks w on w.id = $1 left join submissions i on i.id = e.submission_id
     where e.id = any(array(select id from looked)) and e.type = any($6::text[])
       and e.form_id = coalesce(w.form_id, e.form_id) and e.form_id <> '${demoFormId}'
       and (e.submission_id is null or (i.id is not null and ${isWanted}))
       and (e.type = 'submission.deleted' or (select deleted_at is null from forms where id = e.form_id))
       and not array[w.id] <@ array(select webhook_id from deliveries where event_id = e.id union all
         select webhook_id from delivery_queue where event_id = e.id and first_lease_until is null)
       and e.id <> all(array(select event_id from delivery_queue where webhook_id = $1 and first_lease_until is not null))
   )`,
  'looked',
);

/** An email that could not even be made has no receiver. */
const replayable = `exists (select from events e where e.id = deliveries.event_id) and (
  (channel = 'webhook' and kind <> 'session.ended'
    and exists (select from webhooks w where w.id = deliveries.webhook_id and w.deleted_at is null))
  or (kind = 'session.ended'
    and exists (select from sessions s join events e on e.session_id = s.id where e.id = deliveries.event_id))
  or (channel = 'mail' and kind = 'owner' and receiver <> ''
    and exists (select from forms f where f.id = deliveries.form_id and f.deleted_at is null)))`;

/** Of one slice: some milliseconds of row locks. */
const REPLAY_GROUP = 1000;

/** Of one call: some seconds. */
const MAX_REPLAYED = 10_000;

/** Events that a call looks at, most of which may be delivered: some seconds, too. */
const MAX_SEEN = 100_000;

export type ReplayRange = ({ webhookId: string } | { formId: string } | { missedBy: Webhook }) & {
  createdAfter?: Date | undefined;
  createdBefore?: Date | undefined;
};

/** Takes those of a slice, up to a number, and returns the row of `queueTaken`. */
type Take = (tx: Queries, bounds: [from: string, end: string, limit: number]) => Promise<Row[]>;
