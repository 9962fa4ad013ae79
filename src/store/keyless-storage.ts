import type { JsonObject } from '../domain/json/json.ts';
import type { Queries } from './database/queries.ts';

/**
 * Adds to what forms hold that came without a key: submissions and definitions of forms made without one, and
 * files. Each process has a `slot`, so that they seldom wait for each other. Forms that are gone are left out.
 */
export async function addKeylessBytes(db: Queries, slot: number, added: KeylessBytes[]): Promise<void> {
  await db.execute(
    `insert into form_counters as c (form_id, slot, project_id, keyless_bytes)
     select form_id, $1::smallint, project_id, bytes
     from json_to_recordset($2::json) as r(form_id text, project_id text, bytes bigint)
     where exists (select from forms where forms.id = form_id)
     order by form_id
     on conflict (form_id, slot) do update
       set project_id = excluded.project_id, keyless_bytes = c.keyless_bytes + excluded.keyless_bytes`,
    [
      slot,
      JSON.stringify(
        added.map(({ formId, projectId, bytes }) => ({ form_id: formId, project_id: projectId, bytes })),
      ),
    ],
  );
}

/**
 * SQL that counts no longer what the same statement `removed`: rows with the columns form_id, project_id and
 * keyless_bytes, which is null for what came with a key.
 */
export const subtractKeylessBytes = `
  insert into form_counters as c (form_id, slot, project_id, keyless_bytes)
  select form_id, 0, project_id, -sum(keyless_bytes) from removed where keyless_bytes is not null
  group by form_id, project_id order by form_id
  on conflict (form_id, slot) do update
    set project_id = excluded.project_id, keyless_bytes = c.keyless_bytes + excluded.keyless_bytes`;

/** What the forms of a project hold that came without a key, in bytes. */
export async function sumKeylessBytes(db: Queries, projectId: string): Promise<number> {
  const [row] = await db.select(
    `select coalesce(sum(keyless_bytes), 0)::float8 as bytes from form_counters
     where project_id = $1 and keyless_bytes <> 0`,
    [projectId],
  );
  return Math.max(0, Number(row?.bytes));
}

/** What a submission takes: the answers and the metadata lie in its row and in that of its event. */
export function bytesOfSubmission({
  answers,
  metadata,
}: {
  answers: JsonObject;
  metadata: JsonObject;
}): number {
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
