import type { Queries } from './database/queries.ts';

/**
 * Removes up to `limit` deliveries that were made `days` ago and are finished, with their attempts.
 * Returns how many.
 */
export async function purgeDeliveries(queries: Queries, days: number, limit: number): Promise<number> {
  const rows = await queries.query(
    `with old as materialized (
       select id from deliveries
       where status <> 'pending' and created_at < now() - make_interval(days => $1)
       order by created_at limit $2 for update skip locked
     ),
     tries as (delete from attempts where delivery_id in (select id from old))
     delete from deliveries where id in (select id from old) returning id`,
    [days, limit],
  );
  return rows.length;
}

/** Removes up to `limit` events that became deliveries `days` ago, of which none is left. Returns how many. */
export async function purgeEvents(queries: Queries, days: number, limit: number): Promise<number> {
  const rows = await queries.query(
    `delete from events where id in (
       select id from events e
       where fanned_out_at is not null and fanned_out_at < now() - make_interval(days => $1)
         and not exists (select from deliveries d where d.event_id = e.id)
       order by fanned_out_at limit $2 for update skip locked
     )
     returning id`,
    [days, limit],
  );
  return rows.length;
}

/**
 * Removes up to `limit` deliveries of deleted webhooks with their attempts, and webhooks that have none
 * left. Returns how many deliveries.
 */
export async function purgeDeletedWebhooks(queries: Queries, limit: number): Promise<number> {
  const rows = await queries.query(
    `with gone as materialized (
       select d.id from webhooks w join deliveries d on d.webhook_id = w.id
       where w.deleted_at is not null limit $1
     ),
     tries as (delete from attempts where delivery_id in (select id from gone))
     delete from deliveries where id in (select id from gone) returning id`,
    [limit],
  );
  if (rows.length > 0) return rows.length;
  await queries.query(
    `delete from webhooks where id in (
       select id from webhooks w
       where w.deleted_at is not null and not exists (select from deliveries d where d.webhook_id = w.id)
       limit $1 for update skip locked
     )`,
    [limit],
  );
  return 0;
}

/** Removes what counted mails of days gone by. Returns how many rows of each kind at most. */
export async function purgeMailCounts(queries: Queries, limit: number): Promise<number> {
  const quotas = await queries.query(
    `delete from mail_quotas where (address, day, kind) in (
       select address, day, kind from mail_quotas
       where day < to_char(now() at time zone 'UTC', 'YYYY-MM-DD') limit $1 for update skip locked
     )
     returning day`,
    [limit],
  );
  const answers = await queries.query(
    `delete from autoresponses where (form_id, address) in (
       select form_id, address from autoresponses
       where sent_at < now() - interval '24 hours' limit $1 for update skip locked
     )
     returning form_id`,
    [limit],
  );
  return Math.max(quotas.length, answers.length);
}
