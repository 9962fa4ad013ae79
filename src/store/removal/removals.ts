import { setTimeout as sleep } from 'node:timers/promises';
import { defineEntity, p } from '@mikro-orm/core';
import { id, text, time } from '../database/columns.ts';
import { deleteSome, type Queries, type Transaction, type Transactions } from '../database/queries.ts';
import { TODAY } from '../mail/mail-allowances.ts';

/**
 * What is still to be removed of something whose rows are gone, written by the commit that removed them, or were not
 * stored in time. `subject` is its id.
 */
export const RemovalEntity = defineEntity({
  name: 'Removal',
  tableName: 'removals',
  properties: {
    /** Follows from the subject, so that nothing is noted twice. */
    id: id().primary(),
    /** `file`: the bytes of an upload. The other kinds are reserved. */
    kind: p.string().columnType('text').check("kind in ('file', 'form', 'project', 'webhook')"),
    subject: id(),
    /** When it is tried next. */
    dueAt: time(),
    attempts: p.integer().default(0),
    /** Why the last attempt failed. */
    error: text().strictNullable(),
  },
  indexes: [{ name: 'removals_due', properties: ['dueAt'] }],
});

/**
 * Notes, before the bytes of an upload are stored, that they are to be removed in an hour: so none stay without a row,
 * whatever fails. `keepFile` takes it back.
 */
export async function planFileRemoval(db: Queries, uploadId: string): Promise<void> {
  await db.execute(
    `insert into removals (id, kind, subject, due_at)
     values ('rmv_' || $1::text, 'file', $1, date_trunc('milliseconds', now()) + interval '1 hour')
     on conflict do nothing`,
    [uploadId],
    { repeatable: true },
  );
}

/** Keeps the bytes whose removal was planned, in the transaction that stores their row. False if it has begun. */
export async function keepFile(tx: Transaction, uploadId: string): Promise<boolean> {
  const planned = { id: `rmv_${uploadId}`, attempts: 0 };
  return (await tx.write((em) => em.nativeDelete(RemovalEntity, planned))) > 0;
}

/**
 * SQL that notes that the bytes of the uploads are to be removed that the same statement `removed`, by their column
 * id.
 */
export const noteFileRemovals = `
  insert into removals (id, kind, subject, due_at, attempts)
  select 'rmv_' || id, 'file', id, date_trunc('milliseconds', now()), 0 from removed on conflict do nothing`;

/**
 * Removes the bytes of up to `limit` uploads that are due, by `remove`, which may be called again for what is gone.
 * What fails is due again after 10 s, then after twice the time, an hour at most: that time is set before the attempt,
 * so that a process that dies leaves nothing behind. While a backup copies files, nothing is due.
 *
 * `more` says whether more may be due.
 */
export async function removeDueFiles(
  db: Queries,
  remove: (uploadId: string) => Promise<void>,
  limit: number,
): Promise<FileRemovals> {
  const rows = await db.execute(claimFiles, [REMOVALS_LOCK, limit]);
  const done: string[] = [];
  const failed: FileRemovals['failed'] = [];
  await Promise.all(
    rows.map(async (row) => {
      const [removalId, uploadId] = [String(row.id), String(row.subject)];
      try {
        await remove(uploadId);
        done.push(removalId);
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        failed.push({ uploadId, error });
        const words = error.message.slice(0, MAX_ERROR_CHARACTERS);
        await db.write((em) => em.nativeUpdate(RemovalEntity, { id: removalId }, { error: words }));
      }
    }),
  );
  await db.write((em) => em.nativeDelete(RemovalEntity, { id: { $in: done } }));
  return { removed: done.length, failed, more: rows.length === limit };
}

/** PostgreSQL's shared lock, for the length of the statement: a backup holds the same one alone. */
const claimFiles = `
  with free as materialized (select pg_try_advisory_xact_lock_shared($1) as is_free)
  update removals set attempts = attempts + 1,
    due_at = date_trunc('milliseconds', now()) + make_interval(secs => least(3600, 10 * 2 ^ least(attempts, 9)))
  where id = any (array(
    select id from removals
    where kind = 'file' and due_at <= now() and (select is_free from free)
    order by due_at limit $2 for update skip locked
  ))
  returning id, subject`;

/** Any fixed number, the same in every process. */
const REMOVALS_LOCK = 4_715_924;

/** As much of it as tells what to do. */
const MAX_ERROR_CHARACTERS = 500;

/**
 * Runs `work` while no process removes files, so that those which the rows of this moment name stay; undefined, without
 * running it, if something else does so for longer than a claim takes. Others' removals wait until then.
 *
 * Fails if the connection is lost meanwhile; then `work` may run again.
 */
export async function holdRemovals<T>(
  database: Transactions,
  work: () => Promise<T>,
): Promise<T | undefined> {
  return database.transaction(async (tx) => {
    await tx.select(`select set_config(name, '0', true) from pg_settings
      where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')`);
    for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
      const [row] = await tx.select('select pg_try_advisory_xact_lock($1) as is_held', [REMOVALS_LOCK]);
      if (row?.is_held === true) return work();
      await sleep(LOCK_POLL_MS);
    }
    return undefined;
  });
}

/** Claims hold the lock for some milliseconds. */
const LOCK_TRIES = 50;
const LOCK_POLL_MS = 50;

/** How much is to be removed, and how much of it failed before. Counts up to 10,000. */
export async function readRemovalState(db: Queries): Promise<RemovalState> {
  const [row] = await db.select(
    `select count(*) as waiting, count(error) as failing from (select error from removals limit 10000) as r`,
  );
  return { waiting: Number(row?.waiting), failing: Number(row?.failing) };
}

type RemovalState = { waiting: number; failing: number };

type FileRemovals = {
  removed: number;
  failed: { uploadId: string; error: Error }[];
  more: boolean;
};

/** Removes up to `limit` rows of each kind that is of no use once its time is over. Returns how many, by table. */
export async function removeOutdated(db: Queries, limit: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [table, { key, time, until = 'now()' }] of Object.entries(outdated)) {
    const rows = await deleteSome(db, table, { key, where: `${time} < ${until}`, orderBy: time, limit });
    counts[table] = rows.length;
  }
  return counts;
}

/** By table: its primary key, the column that says how old a row is, which has an index, and until when rows go. */
const outdated: Record<string, { key: string; time: string; until?: string }> = {
  autoresponses: { key: 'form_id, address', time: 'sent_at', until: "now() - interval '24 hours'" },
  idempotency_keys: { key: 'id', time: 'created_at', until: "now() - interval '24 hours'" },
  mail_allowances: { key: 'holder, kind, day', time: 'day', until: TODAY },
  mailed_links: { key: 'token_hash', time: 'expires_at' },
  owner_sessions: { key: 'token_hash', time: 'expires_at' },
  rate_limits: { key: 'key', time: 'resets_at' },
  used_sign_in_links: { key: 'token_hash', time: 'expires_at' },
};
