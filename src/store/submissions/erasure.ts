import { textOrNull, timeOf } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';
import { removeDeliveries } from '../deliveries/delivery-removal.ts';
import { subtractKeylessBytes } from '../keyless-storage.ts';
import { type Announcement, removeRows } from './submission-removal.ts';

/** The forms of a project, deleted ones too, up to `limit` in the order of their ids from the one after `after` on. */
export async function listFormIds(
  db: Queries,
  projectId: string,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const rows = await db.select(
    'select id from forms where project_id = $1 and id > $2 order by id limit $3',
    [projectId, after, limit],
  );
  return rows.map(({ id }) => String(id));
}

/** Whether a form is of a project, deleted or not. */
export async function isFormOf(db: Queries, projectId: string, formId: string): Promise<boolean> {
  const rows = await db.select('select from forms where id = $1 and project_id = $2', [formId, projectId]);
  return rows.length > 0;
}

/**
 * Looks at up to `limit` of a form's submissions of a status, from the one after `after` on, and removes those of
 * which an answer, or a text of the session's metadata, is `value`, whatever its case; with them their sessions.
 * `last` is the last that was looked at; null if that were all.
 */
export async function eraseSubmissionsWith(
  tx: Transaction,
  { formId, status, after, value, limit }: ErasureStep & { status: string },
  announcement: Announcement,
): Promise<Erased> {
  const rows = await tx.select(
    `select id, session_id, ${holds('answers')} or ${holds('metadata')} as found from submissions
     where form_id = $1 and status = $2 and id > $3 order by id limit $5`,
    [formId, status, after, value, limit],
  );
  const found = rows.filter((row) => row.found === true);
  const ids = found.map(({ id }) => String(id));
  const { uploadIds } = ids.length === 0 ? { uploadIds: [] } : await removeRows(tx, ids, announcement);
  const sessionIds = found.flatMap(({ session_id }) => textOrNull(session_id) ?? []);
  await removeSessions(tx, formId, sessionIds);
  return { removed: ids.length, uploadIds, last: rows.length < limit ? null : String(rows.at(-1)?.id) };
}

/**
 * Does the same with the sessions of a form, of which a text of the prefill, the partial answers or the metadata is
 * `value`. `after` and `last` are times and ids of them.
 */
export async function eraseSessionsWith(
  tx: Transaction,
  { formId, after, value, limit }: ErasureStep,
): Promise<Erased> {
  const [createdAt = '', id = ''] = after === '' ? ['-infinity', ''] : after.split(' ');
  const rows = await tx.select(
    `select id, created_at, ${holds('prefill')} or ${holds('metadata')}
       or coalesce(${holds('partial_answers')}, false) as found from sessions
     where form_id = $1 and (created_at, id) > ($2::timestamptz, $3) order by created_at, id limit $5`,
    [formId, createdAt, id, value, limit],
  );
  const ids = rows.filter((row) => row.found === true).map((row) => String(row.id));
  await removeSessions(tx, formId, ids);
  const last = rows.at(-1);
  const isEnd = rows.length < limit || last === undefined;
  return {
    removed: ids.length,
    uploadIds: [],
    last: isEnd ? null : `${timeOf(last.created_at).toISOString()} ${String(last.id)}`,
  };
}

/** Forgets that a form has answered to a mailbox, which it does once a day. */
export async function forgetAutoresponse(tx: Transaction, formId: string, mailbox: string): Promise<void> {
  await tx.execute('delete from autoresponses where form_id = $1 and address = $2', [formId, mailbox]);
}

/** Removes sessions of a form with the events of their ends, and what they count for where they came without a key. */
async function removeSessions(tx: Transaction, formId: string, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const events = await tx.select(
    `select id from events where form_id = $1 and submission_id is null and session_id = any($2)`,
    [formId, ids],
  );
  const eventIds = events.map(({ id }) => id);
  await removeDeliveries(tx, 'event_id = any($1)', [eventIds]);
  await tx.execute('delete from events where id = any($1)', [eventIds]);
  await tx.execute(
    `with removed as (
       delete from sessions where id = any($1) returning form_id, project_id, keyless_bytes
     ) ${subtractKeylessBytes}`,
    [ids],
  );
}

/** Whether a text anywhere in a column of JSON is the parameter $4. */
function holds(column: string): string {
  return `exists (select from jsonb_path_query(${column}::jsonb, 'strict $.**') as part
    where jsonb_typeof(part) = 'string' and lower(part #>> '{}') = lower($4))`;
}

export type ErasureStep = { formId: string; after: string; value: string; limit: number };

/** `uploadIds` are the uploads whose bytes are to be removed next. */
export type Erased = { removed: number; uploadIds: string[]; last: string | null };
