import { isFree } from './delivery-queue.ts';
import { type Queries, timeOf } from './queries.ts';

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
       exists (select from deliveries where ${isFree} and due_at between $2 and now()) as deliveries,
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
    deliveries: row?.deliveries === true,
    sessions: row?.sessions === true,
  };
}

export type DueWork = { at: Date; events: boolean; deliveries: boolean; sessions: boolean };
