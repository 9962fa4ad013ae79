import type { SoughtValue } from '../../domain/answers/answer-texts.ts';
import { textOrNull, timeOf } from '../database/columns.ts';
import type { Queries, Row, Transaction } from '../database/queries.ts';
import { removeDeliveries } from '../deliveries/remove.ts';
import { FormEntity } from '../forms/forms.ts';
import { deleteSessions } from '../sessions/session-removal.ts';
import { removeUploads } from '../uploads.ts';
import { type Announcement, idsOf, removeRows } from './submission-removal.ts';

/** The forms of a project, deleted ones too, up to `limit` in the order of their ids from the one after `after` on. */
export async function listFormIds(
  db: Queries,
  projectId: string,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const where = { projectId, id: { $gt: after } };
  const range = { fields: ['id'], orderBy: { id: 'asc' }, limit } as const;
  return (await db.read((em) => em.find(FormEntity, where, range))).map(({ id }) => id);
}

/** Whether a form is of a project, deleted or not. */
export async function isFormOf(db: Queries, projectId: string, formId: string): Promise<boolean> {
  return (await db.read((em) => em.count(FormEntity, { id: formId, projectId }))) > 0;
}

/**
 * Looks at up to `limit` of a form's submissions of a status, from the one after `after` on, and removes those of
 * which an answer, a text of the session's metadata, the source, the idempotency key or the name of a file (with or
 * without its ending) is the value; with them their sessions. `last` is the last that was looked at; null if that
 * were all. Those with an answer that has the value in it are mentions, which go too if `includeMentions`.
 */
export async function eraseSubmissionsWith(
  tx: Transaction,
  step: ErasureStep & { status: string; includeMentions: boolean },
  announcement: Announcement,
): Promise<Erased> {
  const { formId, status, after, value, limit, includeMentions } = step;
  const rows = await tx.select(
    `select id, session_id, ${holds('answers')} or ${holds('metadata')} or coalesce(${holds('respondent')}, false)
       or (${isValue('source')} and source not in (${ownSources}))
       or coalesce(${isValue('idempotency_key')}, false)
       or exists (select from uploads where submission_id = s.id and ${isFileName}) as found,
       array(select key from jsonb_each(answers::jsonb) where ${mayHold('answers')} and exists (
         select from jsonb_path_query(value, 'strict $.**') as part
         where jsonb_typeof(part) = 'string' and part #>> '{}' ~* $9)) as mentions
     from submissions s
     where form_id = $1 and status = $6 and id > $7 order by id limit $8`,
    [...soughtParams(formId, value), status, after, limit, value.mention],
  );
  const mentionsOf = ({ id, mentions }: Row): Mention[] =>
    [mentions].flat().map((field) => ({ submissionId: String(id), formId, fieldId: String(field) }));
  const found = rows.filter((row) => isFound(row) || (includeMentions && mentionsOf(row).length > 0));
  const gone = found.length > 0 ? idsOf(await removeRows(tx, idsOf(found), announcement)) : [];
  const sessionIds = found.flatMap(({ session_id }) => textOrNull(session_id) ?? []);
  await removeSessions(tx, formId, sessionIds);
  const mentions = rows.filter(({ id }) => !gone.includes(String(id))).flatMap(mentionsOf);
  return { searched: rows.length, removed: gone.length, last: lastOf(rows, limit), mentions };
}

/**
 * Does the same with the sessions of a form where a text of the prefill, the partial answers, the metadata or the
 * context, the reason, whom it notifies or the idempotency key is the value. `after` and `last` are times and ids of
 * them.
 */
export async function eraseSessionsWith(
  tx: Transaction,
  { formId, after, value, limit }: ErasureStep,
): Promise<Erased> {
  const [createdAt = '', id = ''] = after === '' ? ['-infinity', ''] : after.split(' ');
  const rows = await tx.select(
    `select id, created_at, ${holds('prefill')} or ${holds('metadata')}
       or coalesce(${holds('partial_answers')}, false) or coalesce(${holds('context')}, false)
       or coalesce(${holds('notify')}, false)
       or coalesce(${holds('respondent')}, false)
       or coalesce(${isValue('decline_reason')}, false) or coalesce(${isValue('idempotency_key')}, false) as found
     from sessions
     where form_id = $1 and (created_at, id) > ($6::timestamptz, $7) order by created_at, id limit $8`,
    [...soughtParams(formId, value), createdAt, id, limit],
  );
  const ids = idsOf(rows.filter(isFound));
  await removeSessions(tx, formId, ids);
  const last = lastOf(rows, limit);
  const place = last === null ? null : `${timeOf(rows.at(-1)?.created_at).toISOString()} ${last}`;
  return { searched: rows.length, removed: ids.length, last: place };
}

/**
 * Does the same with the events of sessions that have ended, and some are gone by now: their bodies hold what the
 * sessions held. `after` and `last` are ids of them.
 */
export async function eraseEventsWith(
  tx: Transaction,
  { formId, after, value, limit }: ErasureStep,
): Promise<Erased> {
  const rows = await tx.select(
    `select id, ${holds('body')} as found from events
     where form_id = $1 and submission_id is null and type like 'session.%' and id > $6
     order by id limit $7`,
    [...soughtParams(formId, value), after, limit],
  );
  const ids = idsOf(rows.filter(isFound));
  await removeEvents(tx, ids);
  return { searched: rows.length, removed: ids.length, last: lastOf(rows, limit) };
}

/** Removes the uploads of a form with such a name that no submission has claimed. */
export async function eraseUnclaimedUploadsWith(
  tx: Transaction,
  formId: string,
  value: SoughtValue,
): Promise<void> {
  const where = `form_id = $1 and submission_id is null and ${isFileName}`;
  await removeUploads(tx, { where, params: soughtParams(formId, value).slice(0, 3) });
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
  await removeEvents(tx, idsOf(events));
  await deleteSessions(tx, 'id = any($1)', [ids]);
}

async function removeEvents(tx: Transaction, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  await removeDeliveries(tx, 'event_id = any($1)', [ids]);
  await tx.execute('delete from events where id = any($1)', [ids]);
}

const isFound = ({ found }: Row) => found === true;

/** The id of the last row of a group; null if there are no more. */
function lastOf(rows: Row[], limit: number): string | null {
  return rows.length < limit ? null : String(rows.at(-1)?.id);
}

/** The first parameters of every statement here. */
function soughtParams(formId: string, { texts, number }: SoughtValue): unknown[] {
  const written = texts.map((text) => JSON.stringify(text).slice(1, -1));
  // A number can be written in several ways, and so can what has an escape that this service does not write.
  const patterns = [...written, '\\u'].map((text) => `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`);
  return [
    formId,
    texts,
    SPACES,
    number === undefined ? null : JSON.stringify(number),
    number === undefined ? patterns : ['%'],
  ];
}

/** Whether a text is the value. */
function isValue(text: string): string {
  return `lower(btrim(${text}, $3)) = any(array(select lower(sought) from unnest($2::text[]) as sought))`;
}

/**
 * Whether a text or a number anywhere in a column of JSON is the value. Few columns have it at all, and to look for it
 * in the text of one takes a fraction of the time of reading that as JSON.
 */
function holds(column: string): string {
  return `${mayHold(column)}
    and exists (select from jsonb_path_query(${column}::jsonb, 'strict $.**') as part
    where (jsonb_typeof(part) = 'string' and ${isValue(`part #>> '{}'`)}) or part = $4::jsonb)`;
}

function mayHold(column: string): string {
  return `lower(${column}::text) like any(array(select lower(pattern) from unnest($5::text[]) as pattern))`;
}

/** Whether the column filename is the value. */
const isFileName = `(${isValue('filename')} or ${isValue(`regexp_replace(filename, '[.][^.]*$', '')`)})`;

/** What the service itself says: who looks for `api` does not mean every call. */
const ownSources = `'api', 'hosted', 'demo'`;

/** What `trim` of JavaScript takes off: PostgreSQL alone takes off spaces. */
const SPACES =
  ' \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff';

export type ErasureStep = { formId: string; after: string; value: SoughtValue; limit: number };

/** `searched` is how many rows were looked at. */
export type Erased = { searched: number; removed: number; last: string | null; mentions?: Mention[] };

/** An answer that has the value in it, and was left. */
export type Mention = { submissionId: string; formId: string; fieldId: string };
