import { smallestIdAt } from '../../domain/ids.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { EventEntity, type NewEvent } from '../events.ts';
import { QueuedDeliveryEntity, shareOf } from './delivery-queue-table.ts';

/**
 * Takes a finished webhook delivery back into the queue, due at once and at the beginning of the schedule.
 * Event id, body and URL stay. False if it is pending, or its webhook or event is gone.
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
 * Takes the failed deliveries of a webhook back into the queue, those made in `[createdAfter, createdBefore)`,
 * and returns how many. Works in groups, so that no lock is held for long: outside transactions only.
 */
export async function replayFailedDeliveries(db: Queries, range: ReplayRange): Promise<number> {
  const { webhookId, createdAfter, createdBefore } = range;
  const last = smallestIdAt('dlv', createdBefore?.getTime() ?? Number.POSITIVE_INFINITY);
  let from = smallestIdAt('dlv', createdAfter?.getTime() ?? 0);
  for (let count = 0; ; ) {
    const rows = await db.execute(
      replayOf(
        `select id from deliveries
         where webhook_id = $1 and id >= $2 and id < $3 and status = 'failed' and ${replayable}
         order by id limit ${REPLAY_GROUP} for update skip locked`,
      ),
      [webhookId, from, last],
    );
    count += rows.length;
    if (rows.length < REPLAY_GROUP) return count;
    from = rows.reduce((most, row) => (String(row.id) > most ? String(row.id) : most), from);
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
 * Attempts that the log kept with the delivery become rows, since further ones follow. Whoever replays means the
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
      update webhooks set failures_in_row = 0, open_until = null
      where id in (select webhook_id from taken) and failures_in_row > 0
    )
    insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
      attempt_count, due_at, created_at, queued_at, last_attempt_at, response_status)
    select t.id, t.project_id, t.form_id, t.event_id, t.webhook_id, ${shareOf('t.project_id', 'w.keyless')}, t.channel,
      t.kind, t.receiver, t.url, t.attempt_count, ${toMillisecond('now()')}, t.created_at, now(), t.last_attempt_at,
      t.response_status
    from taken t join webhooks w on w.id = t.webhook_id
    returning id`;
}

const replayable = `channel = 'webhook'
  and exists (select from webhooks w where w.id = deliveries.webhook_id and w.deleted_at is null)
  and exists (select from events e where e.id = deliveries.event_id)`;

/** Rows of one statement: some milliseconds of row locks. */
const REPLAY_GROUP = 1000;

export type ReplayRange = { webhookId: string; createdAfter?: Date; createdBefore?: Date };

type TestDelivery = { id: string; webhookId: string; url: string; keyless: boolean };
