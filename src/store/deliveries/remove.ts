import { smallestIdAt } from '../../domain/ids.ts';
import type { Queries } from '../database/queries.ts';
import { pendingWhere } from './queue-table.ts';

/** Deletes the pending deliveries of a webhook. */
export async function dropPendingDeliveries(db: Queries, webhookId: string): Promise<void> {
  await removePending(db, 'webhook_id = $1', [webhookId]);
}

/** Removes up to `limit` finished deliveries that were made before a time, with their attempts. Returns how many. */
export async function purgeDeliveries(db: Queries, before: number, limit: number): Promise<number> {
  return removeFinished(db, 'id < $1 order by id limit $2 for update skip locked', [
    smallestIdAt('dlv', before),
    limit,
  ]);
}

/**
 * Removes deliveries, pending and finished, that fulfil a condition on an indexed column, with their attempts:
 * up to `limit` of each if there is one. Returns how many at most of a kind.
 *
 * The queue comes first: what is settled meanwhile is in the log by the time that this is looked at.
 */
export async function removeDeliveries(
  db: Queries,
  condition: string,
  params: unknown[],
  limit?: number,
): Promise<number> {
  const limited = limit === undefined ? '' : ` limit ${limit}`;
  const pending = await removePending(db, condition, params, limited);
  const finished = await removeFinished(db, `${condition}${limited} for update`, params);
  return Math.max(pending, finished);
}

async function removePending(
  db: Queries,
  condition: string,
  params: unknown[],
  limited = '',
): Promise<number> {
  const rows = await db.execute(
    `with gone as materialized (${pendingWhere(condition)}${limited}),
       attempts_gone as (delete from attempts where delivery_id = any(array(select id from gone)))
     delete from delivery_queue where id = any(array(select id from gone)) returning id`,
    params,
  );
  return rows.length;
}

async function removeFinished(db: Queries, selection: string, params: unknown[]): Promise<number> {
  const rows = await db.execute(
    `with gone as materialized (select id from deliveries where ${selection}),
       attempts_gone as (delete from attempts where delivery_id = any(array(select id from gone)))
     delete from deliveries where id = any(array(select id from gone)) returning id`,
    params,
  );
  return rows.length;
}
