import { instantOf, KEYLESS_CREATOR, smallestIdAt } from '../../domain/ids.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Queries, Transactions } from '../database/queries.ts';
import { createSlices } from '../database/slices.ts';
import { EventEntity, type NewEvent } from '../events.ts';
import { closedAt } from '../webhooks/webhooks.ts';
import { QueuedDeliveryEntity, tenantOf } from './delivery-queue-table.ts';

/**
 * Takes a finished delivery to a webhook, or email of a submission, back into the queue, due at once and at the
 * beginning of the schedule. Event id, body, URL and address stay; an email is written anew when it is sent, to whom
 * it may go then. False if it is pending, or another email, or its webhook, form or event is gone.
 */
export async function replayDelivery(
  db: Queries,
  { projectId, id }: { projectId: string; id: string },
): Promise<boolean> {
  const rows = await db.execute(
    replayOf(`select id from deliveries where id = $1 and project_id = $2 and ${replayable} for update`),
    [id, projectId],
  );
  return rows.length > 0;
}

/**
 * Takes the failed deliveries of a webhook, or the failed emails of a form's submissions, back into the queue, those
 * made in `[createdAfter, createdBefore)`, oldest first and at most `MAX_REPLAYED`. Returns how many, and from when
 * on there may be more. Works in slices, so that no lock is held for long. Once `signal` is aborted no further one
 * begins.
 */
export async function replayFailedDeliveries(
  database: Transactions,
  range: ReplayRange,
  signal?: AbortSignal,
): Promise<{ count: number; next?: Date }> {
  const { createdAfter, createdBefore } = range;
  const [condition, of] =
    'webhookId' in range
      ? ['webhook_id = $1', range.webhookId]
      : [`form_id = $1 and channel = 'mail'`, range.formId];
  const last = smallestIdAt('dlv', createdBefore?.getTime() ?? Number.POSITIVE_INFINITY);
  const slice = createSlices(database, REPLAY_GROUP);
  let from = smallestIdAt('dlv', createdAfter?.getTime() ?? 0);
  for (let count = 0; ; ) {
    signal?.throwIfAborted();
    const { rows, limit } = await slice(async (tx, most) => {
      const limit = Math.min(most, MAX_REPLAYED - count);
      const sql = replayOf(
        `select id from deliveries
         where ${condition} and id >= $2 and id < $3 and status = 'failed' and ${replayable}
         order by id limit $4 for update skip locked`,
      );
      return { rows: await tx.execute(sql, [of, from, last, limit]), limit };
    });
    count += rows.length;
    if (rows.length < limit) return { count };
    from = rows.reduce((most, row) => (String(row.id) > most ? String(row.id) : most), from);
    if (count >= MAX_REPLAYED) return { count, next: new Date(instantOf(from)) };
  }
}

/**
 * Writes an event for one webhook alone, together with its delivery. Call in a transaction, then notify the workers.
 */
export async function insertTestDelivery(
  db: Queries,
  { event, delivery }: { event: NewEvent; delivery: TestDelivery },
): Promise<void> {
  const { id, webhookId, url, keyless } = delivery;
  const { createdAt, projectId, formId, type } = event;
  await db.write(async (em) => {
    await em.insert(EventEntity, { ...event, fannedOutAt: createdAt });
    await em.insert(QueuedDeliveryEntity, {
      id,
      projectId,
      formId,
      eventId: event.id,
      webhookId,
      share: keyless ? `${projectId} keyless` : projectId,
      channel: 'webhook',
      kind: type,
      receiver: webhookId,
      url,
      mail: null,
      dueAt: createdAt,
      createdAt,
      queuedAt: createdAt,
    });
  });
}

/**
 * Attempts that the log kept with the delivery become rows, since further ones follow. A caller who replays means the
 * receiver to be called: its circuit breaker is closed.
 */
function replayOf(ids: string): string {
  return `with chosen as materialized (${ids}),
    taken as (delete from deliveries where id = any(array(select id from chosen)) returning *),
    kept as (
      insert into attempts
        (id, delivery_id, number, status, response_status, error, response_body, duration_ms, started_at)
      select attempt_id, id, attempt_count, 'delivered', response_status, null, response_body, duration_ms,
        last_attempt_at
      from taken where attempt_id is not null
    ),
    closed as (
      update webhooks set failures_in_row = 0, open_until = ${closedAt('open_until')}
      where id in (select webhook_id from taken) and failures_in_row > 0
    )
    insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
      mail, attempt_count, due_at, created_at, queued_at, last_attempt_at, response_status)
    select t.id, t.project_id, t.form_id, t.event_id, t.webhook_id,
      ${tenantOf('t.project_id', `coalesce(w.keyless, f.created_by = '${KEYLESS_CREATOR}')`)}, t.channel, t.kind, t.receiver, t.url,
      case when t.channel = 'mail' then json_build_object('to', t.receiver, 'eventId', t.event_id) end,
      t.attempt_count, ${toMillisecond('now()')}, t.created_at, now(), t.last_attempt_at, t.response_status
    from taken t left join webhooks w on w.id = t.webhook_id left join forms f on f.id = t.form_id
    returning id`;
}

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

export type ReplayRange = ({ webhookId: string } | { formId: string }) & {
  createdAfter?: Date;
  createdBefore?: Date;
};

type TestDelivery = { id: string; webhookId: string; url: string; keyless: boolean };
