import type { Database, Queries, Transaction } from '../database/database.ts';
import { closeWebhooks } from '../webhooks/webhooks.ts';
import { type Form, FormEntity, insertForm } from './forms.ts';
import { insertFirstVersion, type NewVersion } from './versions.ts';

/** Finds the hidden form of a project that asks what has this checksum. */
export async function findQuestionForm(
  db: Queries,
  projectId: string,
  checksum: string,
): Promise<string | undefined> {
  const where = { projectId, questionChecksum: checksum, deletedAt: null };
  return (await db.read((em) => em.findOne(FormEntity, where, { fields: ['id'] })))?.id;
}

/** Stores a hidden form with its only version. False if the project has one with the same questions by now. */
export async function insertQuestionForm(
  database: Database,
  { form, version }: { form: Form; version: NewVersion },
): Promise<boolean> {
  const { projectId, questionChecksum } = form;
  return database.transaction(async (tx) => {
    // Of several at once the others wait here, for as long as the first takes to commit.
    await tx.execute('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
      `question ${projectId} ${questionChecksum}`,
    ]);
    if ((await findQuestionForm(tx, projectId, questionChecksum ?? '')) !== undefined) return false;
    await insertForm(tx, form);
    await insertFirstVersion(tx, form.id, { ...version, formId: form.id });
    return true;
  });
}

/** Keeps a hidden form from being removed until the transaction ends. False if it is gone. */
export async function keepQuestionForm(tx: Transaction, formId: string): Promise<boolean> {
  const rows = await tx.select('select id from forms where id = $1 and deleted_at is null for share', [
    formId,
  ]);
  return rows.length > 0;
}

/**
 * Deletes for every reader up to `limit` hidden forms whose last session ended longer ago than they keep answers. One
 * that has newer sessions is looked at again when the last of these could have been gone for so long. Returns how many
 * were looked at, and which were deleted; their rows are removed as those of any deleted form.
 */
export async function removeIdleQuestions(database: Database, limit: number): Promise<IdleQuestions> {
  const dueForms = `select id from forms
    where question_checksum is not null and deleted_at is null and question_due_at <= now()
    order by question_due_at limit $1`;
  // A look costs no transaction while nothing is due.
  if ((await database.select(dueForms, [1])).length === 0) return { looked: 0, deleted: [] };
  return database.transaction(async (tx) => {
    const due = await tx.select(`${dueForms} for update skip locked`, [limit]);
    const rows = await tx.execute(
      `update forms f set question_due_at = ends.due_at, deleted_at = case when ends.due_at <= now() then now() end
       from (
         select q.id, coalesce(
             max(coalesce(s.submitted_at, s.cancelled_at, least(s.expires_at, now()))) filter (where s.id is not null),
             '-infinity')
           + q.retention_days * interval '24 hours' as due_at
         from forms q left join sessions s on s.form_id = q.id
           and s.expires_at > now() - q.retention_days * interval '24 hours'
         where q.id = any($1) group by q.id
       ) ends where f.id = ends.id
       returning f.id, f.project_id, f.deleted_at`,
      [due.map(({ id }) => String(id))],
    );
    const deleted = rows.flatMap(({ id, project_id, deleted_at }) =>
      deleted_at === null ? [] : [{ id: String(id), projectId: String(project_id) }],
    );
    for (const { id: formId } of deleted) await closeWebhooks(tx, { formId });
    return { looked: due.length, deleted };
  });
}

type IdleQuestions = { looked: number; deleted: { id: string; projectId: string }[] };
