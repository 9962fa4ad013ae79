import type { Queries } from '../database/queries.ts';
import { pendingWhere } from '../deliveries/queue-table.ts';
import { subtractKeylessBytes } from '../keyless-storage.ts';
import { countByForm, type RemovedOfForm } from '../submissions/submission-removal.ts';

/**
 * Removes up to `limit` of the sessions that ended longer ago than their forms keep submissions, but for visitors', by
 * the time of the database, with the events of them and their deliveries. Returns how many, by their forms. One
 * statement finds them over all forms, by an index.
 */
export async function removeExpiredSessions(db: Queries, limit: number): Promise<RemovedOfForm[]> {
  const rows = await db.execute(
    `with removed as (delete from sessions where id in (
       select s.id from forms f cross join lateral (
         select id from sessions
         where form_id = f.id and expires_at < now() - f.retention_days * interval '24 hours' and keyless_bytes is null
           and (submitted_at is not null or expiry_announced_at is not null)
         order by expires_at limit $1 for update skip locked
       ) s where f.retention_days is not null limit $1
     ) returning id, form_id, project_id),
     told as materialized (
       select id from events where session_id = any(array(select id from removed)) and submission_id is null
     ),
     queued as (
       delete from delivery_queue where id = any(array(${pendingWhere('event_id = any(array(select id from told))')}))
       returning id
     ),
     logged as (delete from deliveries where event_id = any(array(select id from told)) returning id),
     attempted as (
       delete from attempts where delivery_id in (select id from queued union all select id from logged)
     ),
     announced as (delete from events where id = any(array(select id from told)))
     select form_id, project_id from removed`,
    [limit],
  );
  return countByForm(rows);
}

/**
 * Removes up to `limit` sessions of visitors that ended more than a day ago, and what they count for; returns how
 * many.
 */
export async function removeVisitorsSessions(db: Queries, limit: number): Promise<number> {
  return deleteSessions(
    db,
    `id in (
       select id from sessions
       where keyless_bytes is not null and expires_at < now() - interval '1 day'
       order by expires_at limit $1 for update skip locked
     )`,
    [limit],
  );
}

/** Deletes a session that a visitor has begun, and what it counts for. One that was submitted stays. */
export async function deleteVisitorsSession(db: Queries, sessionId: string): Promise<void> {
  const where = 'id = $1 and keyless_bytes is not null and submitted_at is null';
  await deleteSessions(db, where, [sessionId]);
}

/** Deletes sessions, and what they count for where they came without a key; returns how many. */
export async function deleteSessions(
  db: Pick<Queries, 'execute'>,
  where: string,
  params: unknown[],
): Promise<number> {
  const rows = await db.execute(
    `with removed as (
       delete from sessions where ${where} returning form_id, project_id, keyless_bytes
     ), counted as (${subtractKeylessBytes})
     select 1 as one from removed`,
    params,
  );
  return rows.length;
}
