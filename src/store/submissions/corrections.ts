import { currentTraceparent } from '../../telemetry/trace-context.ts';
import { textOrNull } from '../database/columns.ts';
import { DatabaseUnavailable } from '../database/faults.ts';
import type { Transactions } from '../database/queries.ts';
import { NO_CAPACITY, timesOf } from '../deliveries/fairness.ts';
import { findOutcomes, type WriteOutcome } from './explain-conflicts.ts';
import { insertSubmissions, type NewSubmission, prepare } from './submission-insert.ts';
import { announce } from './submission-removal.ts';

/**
 * Stores a submission that `replaces` another, and both their events in one commit. It takes the place of the former in
 * its session, in what counts, and with the files that it still names; links to correct the former are used up. The
 * caller notifies the workers afterwards.
 *
 * The row of the former is locked first: of any number of corrections at once one is stored, and none of what is being
 * removed.
 *
 * @throws as `SubmissionWriter.write` does.
 */
export async function storeCorrection(
  { database, settings: { retrySchedule: schedule } }: Storage,
  row: NewSubmission,
): Promise<WriteOutcome> {
  const { id, projectId, formId, createdAt } = row;
  const former = row.replaces ?? '';
  const capacity = { ...NO_CAPACITY, ...timesOf(schedule) };
  // Counted as the former was, and open for no session.
  const prepared = prepare({ ...row, sessionId: null, status: 'replaced' }, currentTraceparent());
  const sentBefore = { ...row, sessionId: null, uploadIds: [] };
  return database.transaction(async (tx) => {
    const [locked] = await tx.select(LOCKED, [former]);
    const other = {
      outcome: 'session_submitted',
      submissionId: textOrNull(locked?.replaced_by) ?? '',
    } as const;
    if (locked?.replaced_by !== null) return (await findOutcomes(tx, [sentBefore])).get(id) ?? other;

    const options = { slot: 0, capacity: () => capacity, onCommitted: () => undefined };
    const [result] = await insertSubmissions(tx, [prepared], options);
    if (result?.outcome === 'refused') throw result.error;
    if (result === undefined || result.outcome === 'undecided') throw new DatabaseUnavailable();
    if (result.outcome !== 'stored') return result;

    const sessionId = textOrNull(locked.session_id);
    await tx.execute(
      `with former as (update submissions set status = 'replaced', replaced_by = $2 where id = $1),
         links as (update mailed_links set used_at = now() where address = $1),
         held as (update sessions set submission_id = $2 where id = $3 and submission_id = $1)
       update submissions set status = $4, replaces = $1, session_id = $3 where id = $2`,
      [former, id, sessionId, row.status],
    );
    if (locked.status === 'accepted') {
      const gone = { id: former, projectId, formId, sessionId, replacedBy: id };
      await announce(tx, 'submission.replaced', [gone], { at: createdAt.getTime(), schedule });
    }
    return result;
  });
}

const LOCKED = 'select status, session_id, replaced_by from submissions where id = $1 for update';

type Storage = { database: Transactions; settings: { retrySchedule: readonly number[] } };
