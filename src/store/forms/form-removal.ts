import { raw } from '@mikro-orm/core';
import { smallestIdAt } from '../../domain/ids.ts';
import type { Database, Queries, Transaction } from '../database/database.ts';
import { deleteSome } from '../database/queries.ts';
import { pendingWhere } from '../deliveries/queue-table.ts';
import { removeDeliveries } from '../deliveries/remove.ts';
import { type Announcement, removeSubmissionsBefore } from '../submissions/submission-removal.ts';
import { removeUploads } from '../uploads.ts';
import { closeWebhooks, notClosing } from '../webhooks/webhooks.ts';
import { FormEntity } from './forms.ts';

/**
 * Deletes an archived form for every reader, with its webhooks. The rows that belong to it are removed
 * by `removeRowsOfForm`, by the caller or in the background.
 */
export async function deleteForm(
  tx: Transaction,
  projectId: string,
  formId: string,
): Promise<'deleted' | 'not_found' | 'not_archived'> {
  const where = { id: formId, projectId, deletedAt: null };
  const deleted = { deletedAt: raw('now()'), updatedAt: raw('now()') };
  const archived = { ...where, status: 'archived' } as const;
  if ((await tx.write((em) => em.nativeUpdate(FormEntity, archived, deleted))) === 0) {
    return (await tx.read((em) => em.count(FormEntity, where))) === 0 ? 'not_found' : 'not_archived';
  }
  await closeWebhooks(tx, { formId });
  return 'deleted';
}

/** Lists up to `limit` deleted forms that may have something left, the longest deleted first. */
export async function listDeletedForms(db: Queries, limit: number): Promise<string[]> {
  const forms = await db.read((em) =>
    em.find(
      FormEntity,
      { deletedAt: { $ne: null } },
      { fields: ['id'], orderBy: { deletedAt: 'asc' }, limit },
    ),
  );
  return forms.map((form) => form.id);
}

/**
 * Removes up to `limit` rows of each kind that belong to a deleted form. `more` says whether something may be
 * left.
 *
 * The form's own row goes last, when nothing refers to it any more (rows that another transaction holds are passed
 * over), and a minute after the deletion: until then a process that has not noticed the deletion could still store
 * something that has to be found.
 */
export async function removeRowsOfForm(
  database: Database,
  { formId, limit }: { formId: string; limit: number },
  announcement: Announcement,
): Promise<boolean> {
  const deliveries = await removeDeliveries(database, ownDeliveries, [formId], limit);
  const beforeId = smallestIdAt('sub', Number.POSITIVE_INFINITY);
  const submissions = await database.transaction((tx) =>
    removeSubmissionsBefore(tx, { formId, beforeId, limit }, announcement),
  );
  const uploads = await removeUploads(database, { where: ownUploads, params: [formId], limit });
  let most = Math.max(deliveries, submissions, uploads);
  for (const { table, key = 'id', where = 'true' } of ownTables) {
    const rows = await deleteSome(database, table, {
      key,
      where: `form_id = $1 and ${where}`,
      params: [formId],
      limit,
    });
    most = Math.max(most, rows.length);
  }
  const more = most >= limit;
  if (!more) await removeFormRow(database, formId);
  return more;
}

async function removeFormRow(db: Queries, formId: string): Promise<void> {
  const rests = [
    pendingWhere(ownDeliveries),
    `select id from deliveries where ${ownDeliveries}`,
    'select id from submissions where form_id = $1',
    `select id from uploads where ${ownUploads}`,
    ...ownTables.map(
      ({ table, where = 'true' }) => `select form_id from ${table} where form_id = $1 and ${where}`,
    ),
  ];
  await db.execute(
    `with gone as (
       delete from forms where id = $1 and deleted_at < now() - interval '1 minute'
         and ${rests.map((rest) => `not exists (${rest})`).join(' and ')}
       returning id
     )
     delete from form_counters where form_id in (select id from gone)`,
    [formId],
  );
}

/** Those of `submission.deleted` go to webhooks of the project, and outlive the form. */
const ownDeliveries = "form_id = $1 and kind <> 'submission.deleted'";

/** Those with a submission go with it. */
const ownUploads = 'form_id = $1 and submission_id is null';

/** Tables whose rows belong to a form, beside deliveries, submissions and uploads. */
const ownTables: { table: string; key?: string; where?: string }[] = [
  { table: 'sessions' },
  { table: 'events', where: "submission_id is null and type <> 'submission.deleted'" },
  { table: 'webhooks', where: notClosing },
  { table: 'mail_recipients', key: 'form_id, address' },
  { table: 'mail_stops', key: 'form_id, address' },
  { table: 'autoresponses', key: 'form_id, address' },
  { table: 'form_versions' },
];
