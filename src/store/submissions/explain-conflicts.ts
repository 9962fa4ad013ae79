import { textOrNull } from '../database/columns.ts';
import type { Queries, Row } from '../database/queries.ts';
import type { Submission } from './submissions.ts';

/**
 * Finds out, by their ids, why rows were not stored: they are from an earlier try whose answer was lost, the first
 * submission with their idempotency key, their session's end, an upload that is another's, or a form that is full.
 *
 * The submissions found are written to: the answer to a caller must be as durable as a commit of ours,
 * also where it was read ahead of a synchronous standby.
 */
export async function findOutcomes(
  db: Queries,
  missed: readonly Missed[],
): Promise<Map<string, WriteOutcome>> {
  if (missed.length === 0) return new Map();
  const asked = missed.map((row) => [
    row.id,
    row.formId,
    row.idempotencyKey,
    row.sessionId,
    row.uploadIds ?? [],
    row.maxAccepted,
    row.respondentKey,
  ]);
  const rows = await db.execute(FIND_OUTCOMES, [JSON.stringify(asked)], { repeatable: true });
  return new Map(
    rows.flatMap((row) => {
      const outcome = outcomeOf(row);
      return outcome === undefined ? [] : [[String(row.id), outcome]];
    }),
  );
}

const FIND_OUTCOMES = `
with asked as materialized (
  select a->>0 as id, a->>1 as form_id, a->>2 as key, a->>3 as session_id, a->4 as upload_ids, (a->>5)::int as max_accepted,
    a->>6 as respondent_key
  from json_array_elements($1::json) a
), found as materialized (
  select asked.id as asked_id, s.id from asked join submissions s on s.id = asked.id
  union
  select asked.id, s.id from asked join submissions s on s.form_id = asked.form_id and s.idempotency_key = asked.key
), written as (
  update submissions set request_fingerprint = request_fingerprint where id in (select id from found)
  returning id, request_fingerprint
)
select asked.id, written.id as first_id, written.request_fingerprint as fingerprint, asked.session_id,
  sessions.submission_id, sessions.cancelled_at is not null as cancelled,
  sessions.declined_at is not null as declined,
  sessions.submitted_at is null and sessions.expires_at > clock_timestamp() as open,
  exists (
    select from json_array_elements_text(asked.upload_ids) as u
    where not exists (select from uploads where uploads.id = u and uploads.submission_id is null)
  ) as upload_taken,
  exists (
    select from submissions s where s.form_id = asked.form_id and s.respondent_key = asked.respondent_key
  ) as respondent_known,
  asked.max_accepted <= (select sum(accepted) from form_counters c where c.form_id = asked.form_id) as form_full
from asked
left join found on found.asked_id = asked.id
left join written on written.id = found.id
left join sessions on sessions.id = asked.session_id`;

/** Undefined if what stood in the way is gone by now, so that the row is to be tried again. */
function outcomeOf(row: Row): WriteOutcome | undefined {
  if (row.first_id === row.id) return STORED;
  const firstId = textOrNull(row.first_id);
  if (firstId !== null) {
    return { outcome: 'duplicate', submissionId: firstId, fingerprint: textOrNull(row.fingerprint) };
  }
  if (row.declined === true) return { outcome: 'session_declined' };
  if (row.cancelled === true) return { outcome: 'session_cancelled' };
  if (row.session_id === null || row.open === true) {
    if (row.respondent_known === true) return { outcome: 'respondent_known' };
    if (row.upload_taken === true) return { outcome: 'upload_taken' };
    return row.form_full === true ? { outcome: 'form_full' } : undefined;
  }
  const submissionId = textOrNull(row.submission_id);
  if (submissionId === null) return { outcome: 'session_expired' };
  return { outcome: 'session_submitted', submissionId };
}

/** What became of a submission that was stored. */
export const STORED = { outcome: 'stored' } as const;

/**
 * What became of a submission. `duplicate` names the first submission with the idempotency key, whose
 * fingerprint tells whether it was the same request.
 */
export type WriteOutcome =
  | { outcome: 'stored' }
  | { outcome: 'duplicate'; submissionId: string; fingerprint: string | null }
  | { outcome: 'session_submitted'; submissionId: string }
  | { outcome: 'session_expired' }
  | { outcome: 'session_cancelled' }
  | { outcome: 'session_declined' }
  | { outcome: 'respondent_known' }
  | { outcome: 'upload_taken' }
  | { outcome: 'form_full' };

/** What a row is found by, and what may stand in its way. */
type Missed = Pick<Submission, 'id' | 'formId' | 'idempotencyKey' | 'sessionId' | 'respondentKey'> & {
  uploadIds?: string[];
  maxAccepted?: number | undefined;
};
