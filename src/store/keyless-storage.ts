import type { JsonObject } from '../domain/json/json.ts';
import type { Queries, Transaction } from './database/queries.ts';

/**
 * Adds to what a form holds that came without a key, in the transaction that stores it: submissions, definitions and
 * sessions of forms made without one, and files.
 */
export async function addKeylessBytes(
  tx: Transaction,
  { formId, projectId, bytes }: KeylessBytes,
): Promise<void> {
  await tx.execute(
    `with stored as (select $1::text as form_id, $2::text as project_id, $3::int as keyless_bytes) ${addStoredBytes}`,
    [formId, projectId, bytes],
  );
}

/**
 * SQL that counts rows of the same statement, with the columns form_id, project_id and keyless_bytes, which is null for
 * what came with a key: what it `stored`, in any slot, so that writers seldom wait for each other.
 */
export const addStoredBytes = countedBytes('stored', '(random() * 15)::smallint', 'sum(keyless_bytes)');

/** The same of what it `removed`, which counts no longer. */
export const subtractKeylessBytes = countedBytes('removed', '0', '-sum(keyless_bytes)');

function countedBytes(rows: string, slot: string, bytes: string): string {
  return `
  insert into form_counters as c (form_id, slot, accepted, spam, project_id, keyless_bytes)
  select form_id, ${slot}, 0, 0, project_id, ${bytes} from ${rows} where keyless_bytes is not null
  group by form_id, project_id order by form_id
  on conflict (form_id, slot) do update
    set project_id = excluded.project_id, keyless_bytes = c.keyless_bytes + excluded.keyless_bytes`;
}

/** What the forms of a project hold that came without a key, in bytes. */
export async function sumKeylessBytes(db: Queries, projectId: string): Promise<number> {
  const [row] = await db.select(
    `select coalesce(sum(keyless_bytes), 0)::float8 as bytes from form_counters
     where project_id = $1 and keyless_bytes <> 0`,
    [projectId],
  );
  return Math.max(0, Number(row?.bytes));
}

/** What a submission takes: the answers and the metadata are in its row and in that of its event. */
export function bytesOfSubmission({ answers, metadata }: Record<'answers' | 'metadata', JsonObject>): number {
  return 2 * (bytesOf(answers) + bytesOf(metadata)) + ROW_BYTES;
}

/** What a session takes that a visitor of a form's page has begun. */
export function bytesOfSession({ prefill, partialAnswers }: SessionContent): number {
  return bytesOf(prefill) + bytesOf(partialAnswers ?? {}) + ROW_BYTES;
}

/** The same as `bytesOfSubmission` in SQL, of a row of submissions. */
export const bytesOfSubmissionRow = `2 * (octet_length(answers::text) + octet_length(metadata::text)) + 1024`;

/** What a row takes beside, with its indexes. */
const ROW_BYTES = 1024;

function bytesOf(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

type SessionContent = { prefill: JsonObject; partialAnswers: JsonObject | null };

export type KeylessBytes = { formId: string; projectId: string; bytes: number };
