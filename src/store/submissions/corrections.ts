import { currentTraceparent } from '../../telemetry/trace-context.ts';
import { textOrNull } from '../database/columns.ts';
import { DatabaseUnavailable } from '../database/faults.ts';
import type { Transactions } from '../database/queries.ts';
import { insertAnnouncedEvents, NO_CAPACITY, timesOf } from '../deliveries/webhook-deliveries.ts';
import type { NewEvent } from '../events.ts';
import { SessionEntity } from '../sessions/session-table.ts';
import { UploadEntity } from '../uploads.ts';
import { findOutcomes, type WriteOutcome } from './explain-conflicts.ts';
import { insertSubmissions, type NewSubmission, prepare } from './submission-insert.ts';
import { SubmissionEntity } from './submissions.ts';

/**
 * Stores a submission that corrects another, which then counts no longer, and both their events in one commit. It takes
 * the place of the former in its session and with the files that it still names, and no further one of the form's limit.
 * `event` tells of the former. `schedule` is the retry schedule. Notify the workers after it.
 *
 * The row of the former is locked first, so that of any number of corrections at once one is stored; and none of what is
 * being removed.
 *
 * @throws as `SubmissionWriter.write` does.
 */
export async function storeCorrection(
  db: Transactions,
  row: NewSubmission,
  { event, schedule }: { event: NewEvent & { submissionId: string }; schedule: readonly number[] },
): Promise<WriteOutcome | { outcome: 'replaced' }> {
  const formerId = event.submissionId;
  return db.transaction(async (tx) => {
    const [former] = await tx.select(
      `select status, session_id, replaced_by,
         array(select id from uploads where submission_id = s.id and id = any($2)) as held
       from submissions s where id = $1 for update`,
      [formerId, row.uploadIds],
    );
    if (former === undefined || former.replaced_by !== null) {
      const repeated = await findOutcomes(tx, [{ ...row, uploadIds: [] }]);
      return repeated.get(row.id) ?? { outcome: 'replaced' };
    }
    const held = [former.held].flat().map(String);
    const uploadIds = row.uploadIds?.filter((id) => !held.includes(id)) ?? [];
    const prepared = prepare({ ...row, uploadIds }, currentTraceparent());
    const [result] = await insertSubmissions(tx, [prepared], {
      slot: 0,
      capacity: () => ({ ...NO_CAPACITY, ...timesOf(schedule) }),
      onCommitted: () => undefined,
    });
    if (result?.outcome === 'refused') throw result.error;
    if (result === undefined || result.outcome === 'undecided') throw new DatabaseUnavailable();
    if (result.outcome !== 'stored') return result;

    const sessionId = textOrNull(former.session_id);
    const counted = former.status === 'accepted';
    await tx.write(async (em) => {
      const replacement = { replacedBy: row.id, ...(counted && { status: 'replaced' as const }) };
      await em.nativeUpdate(SubmissionEntity, { id: formerId }, replacement);
      await em.nativeUpdate(SubmissionEntity, { id: row.id }, { replaces: formerId, sessionId });
      await em.nativeUpdate(UploadEntity, { id: { $in: held } }, { submissionId: row.id });
      const session = { id: sessionId ?? '', submissionId: formerId };
      await em.nativeUpdate(SessionEntity, session, { submissionId: row.id });
    });
    if (!counted) return result;
    await tx.execute(
      `insert into form_counters as c (form_id, slot, accepted) values ($1, 0, -1)
       on conflict (form_id, slot) do update set accepted = c.accepted - 1`,
      [row.formId],
    );
    await insertAnnouncedEvents(tx, 'submission.replaced', [event], schedule);
    return result;
  });
}
