import { smallestIdAt } from '../domain/ids.ts';
import type { Database, Queries, Transaction } from './database/database.ts';
import { removeSubmissionsBefore } from './removals.ts';

/**
 * Deletes an archived form for every reader, with its webhooks. The rows that belong to it are removed
 * by `removeRowsOfForm`, by the caller or in the background.
 */
export async function deleteForm(
  tx: Transaction,
  projectId: string,
  formId: string,
): Promise<'deleted' | 'not_found' | 'not_archived'> {
  const [form] = await tx.select(
    'select status from forms where id = $1 and project_id = $2 and deleted_at is null for update',
    [formId, projectId],
  );
  if (form === undefined) return 'not_found';
  if (form.status !== 'archived') return 'not_archived';
  await tx.execute('update forms set deleted_at = now(), updated_at = now() where id = $1', [formId]);
  await tx.execute(
    'update webhooks set deleted_at = now(), active = false where form_id = $1 and deleted_at is null',
    [formId],
  );
  return 'deleted';
}

/** Lists up to `limit` deleted forms of which something may be left, the longest deleted first. */
export async function listDeletedForms(db: Queries, limit: number): Promise<string[]> {
  const rows = await db.select(
    'select id from forms where deleted_at is not null order by deleted_at limit $1',
    [limit],
  );
  return rows.map((row) => String(row.id));
}

/**
 * Removes up to `limit` rows of each kind that belong to a deleted form. `more` says whether something may be
 * left; `uploadIds` are the uploads whose bytes are to be removed next.
 *
 * The form's own row goes last, a minute after the deletion: until then a process that has not noticed the
 * deletion could still store something that has to be found.
 */
export async function removeRowsOfForm(
  database: Database,
  formId: string,
  limit: number,
): Promise<{ more: boolean; uploadIds: string[] }> {
  const deliveries = await removeDeliveries(database, formId, limit);
  const submissions = await database.transaction((tx) =>
    removeSubmissionsBefore(tx, formId, smallestIdAt('sub', Number.POSITIVE_INFINITY), limit),
  );
  const uploads = await database.execute(
    `delete from uploads where id in (
       select id from uploads where form_id = $1 and submission_id is null limit $2 for update skip locked
     ) returning id`,
    [formId, limit],
  );
  let most = Math.max(deliveries, submissions.removed, uploads.length);
  for (const { table, key, where } of ownTables) {
    const rows = await database.execute(
      `delete from ${table} where form_id = $1 and ${key} in (
         select ${key} from ${table} where form_id = $1 and ${where} limit $2 for update skip locked
       ) returning ${key}`,
      [formId, limit],
    );
    most = Math.max(most, rows.length);
  }
  const more = most >= limit;
  if (!more) await removeFormRow(database, formId);
  return { more, uploadIds: [...submissions.uploadIds, ...uploads.map((row) => String(row.id))] };
}

async function removeDeliveries(db: Queries, formId: string, limit: number): Promise<number> {
  const rows = await db.execute(
    `with gone as materialized (
       select id from deliveries where form_id = $1 limit $2 for update skip locked
     ),
     tries as (delete from attempts where delivery_id in (select id from gone))
     delete from deliveries where id in (select id from gone) returning id`,
    [formId, limit],
  );
  return rows.length;
}

async function removeFormRow(db: Queries, formId: string): Promise<void> {
  await db.execute(
    `with gone as (
       delete from forms where id = $1 and deleted_at < now() - interval '1 minute' returning id
     )
     delete from form_counters where form_id in (select id from gone)`,
    [formId],
  );
}

/** Tables whose rows belong to a form, beside deliveries and submissions. */
const ownTables = [
  { table: 'sessions', key: 'id', where: 'true' },
  // Those with a submission went with it.
  { table: 'events', key: 'id', where: 'submission_id is null' },
  { table: 'webhooks', key: 'id', where: 'true' },
  { table: 'mail_recipients', key: 'address', where: 'true' },
  { table: 'mail_stops', key: 'address', where: 'true' },
  { table: 'autoresponses', key: 'address', where: 'true' },
  { table: 'form_versions', key: 'id', where: 'true' },
] as const;
