import { timeOf, timeOrNull } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { isFree } from './delivery-queue-table.ts';

/**
 * Reads whether there is work: events to fan out, due deliveries, deliveries of a process that died, expired
 * sessions to announce. One cheap statement, which an idle service runs each second.
 *
 * Ignores events before the id, deliveries due before the time and first leases that ended before the time in
 * `since`. `at` is the database's clock.
 */
export async function findDueWork(db: Queries, since: WorkSince): Promise<DueWork> {
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
       ) as sessions`,
    [since.event, since.due.toISOString(), since.lease.toISOString()],
  );
  return {
    at: timeOf(row?.at),
    events: row?.events === true,
    dueAt: timeOrNull(row?.due_at),
    abandoned: row?.abandoned === true,
    sessions: row?.sessions === true,
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

/** `dueAt` is when the first of the due deliveries was due; null if there is none. */
export type DueWork = {
  at: Date;
  events: boolean;
  dueAt: Date | null;
  abandoned: boolean;
  sessions: boolean;
};

export type WorkSince = { event: string; due: Date; lease: Date };
