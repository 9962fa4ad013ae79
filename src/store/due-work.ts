import { type Queries, timeOf, timeOrNull } from './database/queries.ts';
import { isFree } from './delivery-queue.ts';

/**
 * Looks what there is to do: whether events wait to become deliveries, deliveries are due, and sessions
 * have ended without an announcement. One cheap statement, which an idle service makes each second.
 *
 * Events before the id and deliveries due before the time in `since` are not seen. `at` is the database's
 * time of the look.
 */
export async function findDueWork(queries: Queries, since: { event: string; due: Date }): Promise<DueWork> {
  const [row] = await queries.query(
    `select now() as at,
       exists (select from events where fanned_out_at is null and id >= $1) as events,
       (
         select due_at from deliveries where ${isFree} and due_at between $2 and now() order by due_at limit 1
       ) as due_at,
       exists (
         select from sessions
         where submitted_at is null and expiry_announced_at is null and expires_at <= now()
       ) as sessions`,
    [since.event, since.due.toISOString()],
    { repeatable: true },
  );
  return {
    at: timeOf(row?.at),
    events: row?.events === true,
    dueAt: timeOrNull(row?.due_at),
    sessions: row?.sessions === true,
  };
}

/** `dueAt` is when the first of the due deliveries was due; null if there is none. */
export type DueWork = { at: Date; events: boolean; dueAt: Date | null; sessions: boolean };
