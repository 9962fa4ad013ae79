import { timeOf, timeOrNull } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { isResumable } from './postpone.ts';
import { isFree } from './queue-table.ts';

/**
 * Reads whether there is work: events to fan out, due deliveries, deliveries of a process that died, expired
 * sessions to announce, files to remove, webhooks that work again. One cheap statement, which an idle service runs
 * each second.
 *
 * Ignores events before the id, deliveries due before the time and first leases that ended before the time in
 * `since`. `at` is the database's clock, `dueAt` when the first of the due deliveries was due; null if there is none.
 */
export async function findDueWork(db: Queries, since: WorkSince) {
  const [row] = await db.select(
    `select now() as at,
       exists (select from events where fanned_out_at is null and id >= $1) as events,
       (
         select due_at from delivery_queue where ${isFree} and due_at between $2 and now() order by due_at limit 1
       ) as due_at,
       exists (select from delivery_queue where first_lease_until between $3 and now()) as abandoned,
       exists (
         select from sessions
         where submitted_at is null and expiry_announced_at is null and expires_at <= now()
       ) as sessions,
       exists (select from removals where due_at <= now()) as removals,
       exists (select from webhooks where ${isResumable}) as resumable`,
    [since.event, since.due.toISOString(), since.lease.toISOString()],
  );
  return {
    at: timeOf(row?.at),
    events: row?.events === true,
    dueAt: timeOrNull(row?.due_at),
    abandoned: row?.abandoned === true,
    sessions: row?.sessions === true,
    removals: row?.removals === true,
    resumable: row?.resumable === true,
  };
}

/**
 * Makes up to `limit` deliveries due whose first lease is over, since the process that stored them died.
 * Returns how many.
 */
export async function releaseAbandoned(db: Queries, limit: number): Promise<number> {
  const rows = await db.execute(
    `update delivery_queue set first_lease_until = null, due_at = now()
     where id = any (array(
       select id from delivery_queue where first_lease_until <= now()
       order by first_lease_until limit $1 for update skip locked
     )) and first_lease_until <= now()
     returning id`,
    [limit],
  );
  return rows.length;
}

/**
 * Reads how many deliveries are due, those under way included, and since when the first of them waits that no
 * process has claimed. Counts up to `limit`, so that it costs some milliseconds however long the queue is.
 */
export async function readQueueState(db: Queries, limit: number): Promise<QueueState> {
  const [row] = await db.select(
    `select now() as at,
       (select count(*) from (
         select from delivery_queue where first_lease_until is null and due_at <= now() limit $1
       ) as d) as due,
       (select count(*) from (
         select from delivery_queue where first_lease_until is null and due_at > now() limit $1
       ) as d) as later,
       (
         select due_at from delivery_queue where ${isFree} and due_at <= now() order by due_at limit 1
       ) as oldest`,
    [limit],
  );
  const oldest = timeOrNull(row?.oldest);
  const oldestAgeMs = oldest === null ? 0 : Math.max(0, timeOf(row?.at).getTime() - oldest.getTime());
  return { due: Number(row?.due), later: Number(row?.later), oldestAgeMs };
}

type WorkSince = { event: string; due: Date; lease: Date };

/** `later`: retries, and what is pending for a limit or a circuit breaker. `oldestAgeMs` is 0 if nothing waits. */
type QueueState = { due: number; later: number; oldestAgeMs: number };
