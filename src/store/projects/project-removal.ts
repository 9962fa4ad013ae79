import { demoFormId } from '../../domain/ids.ts';
import type { Database, Transaction } from '../database/database.ts';
import { deleteSome } from '../database/queries.ts';
import { removeDeliveries } from '../deliveries/delivery-removal.ts';
import { closeWebhooks, notClosing } from '../webhooks/webhooks.ts';

/**
 * Ends everything of a project at once: its keys are revoked, its forms and webhooks deleted for every reader. Rows are
 * removed by `removeRowsOfForm` of each form and `removeRowsOfProject`. Doing so again changes nothing.
 */
export async function closeProject(
  tx: Transaction,
  projectId: string,
): Promise<{ keys: number; forms: number }> {
  await closeWebhooks(tx, { projectId });
  const [row] = await tx.execute(
    `with keys as (delete from api_keys where project_id = $1 returning secret_hash),
       revoked as (insert into revoked_keys (secret_hash, revoked_at)
         select secret_hash, now() from keys on conflict do nothing),
       ended as (update forms set status = 'archived', archived_at = coalesce(archived_at, now()), deleted_at = now(),
           updated_at = now()
         where project_id = $1 and deleted_at is null and id <> '${demoFormId}' returning id)
     select (select count(*) from keys) as keys, (select count(*) from ended) as forms`,
    [projectId],
  );
  return { keys: Number(row?.keys), forms: Number(row?.forms) };
}

/**
 * Removes up to `limit` rows of each kind that belong to a closed project and no form, but for what tells of deleted
 * submissions, which a sweep removes. True if there may be more.
 */
export async function removeRowsOfProject(
  database: Database,
  projectId: string,
  limit: number,
): Promise<boolean> {
  const events = await database.select(
    "select id from events where project_id = $1 and type <> 'submission.deleted' order by id limit $2",
    [projectId, limit],
  );
  await removeDeliveries(database, 'event_id = any($1)', [events.map(({ id }) => id)]);
  await database.execute('delete from events where id = any($1)', [events.map(({ id }) => id)]);
  const webhooks = await deleteSome(database, 'webhooks', {
    where: `project_id = $1 and ${notClosing}`,
    params: [projectId],
    limit,
  });
  return events.length === limit || webhooks.length === limit;
}

/** How many submissions a project has, spam too. */
export async function countSubmissionsOfProject(db: Database, projectId: string): Promise<number> {
  const [row] = await db.select(
    `select coalesce(sum(accepted + spam), 0) as count from form_counters
     where form_id in (select id from forms where project_id = $1)`,
    [projectId],
  );
  return Number(row?.count);
}
