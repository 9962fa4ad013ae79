import { timeOf, timeOrNull } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';

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
         select due_at from delivery_queue
         where first_lease_until is null and (leased_until is null or leased_until <= now()) and due_at <= now()
         order by due_at limit 1
       ) as oldest`,
    [limit],
  );
  const oldest = timeOrNull(row?.oldest);
  const oldestAgeMs = oldest === null ? 0 : Math.max(0, timeOf(row?.at).getTime() - oldest.getTime());
  return { due: Number(row?.due), later: Number(row?.later), oldestAgeMs };
}

/** `later`: retries, and what waits for a limit or a circuit breaker. `oldestAgeMs` is 0 if nothing waits. */
export type QueueState = { due: number; later: number; oldestAgeMs: number };
