import { raw } from '@mikro-orm/core';
import { eventTypes } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import { currentTraceparent } from '../../telemetry/trace-context.ts';
import { textOrNull } from '../database/columns.ts';
import { DatabaseUnavailable } from '../database/faults.ts';
import type { Transactions } from '../database/queries.ts';
import { insertAnnouncedEvents, NO_CAPACITY, timesOf } from '../deliveries/webhook-deliveries.ts';
import { MailedLinkEntity } from '../mail/mailed-links.ts';
import { SessionEntity } from '../sessions/session-table.ts';
import { UploadEntity } from '../uploads.ts';
import { findOutcomes, type WriteOutcome } from './explain-conflicts.ts';
import { insertSubmissions, type NewSubmission, prepare } from './submission-insert.ts';
import { SubmissionEntity } from './submissions.ts';

/**
 * Stores a submission that `replaces` another, and both their events in one commit. It takes the place of the former in
 * its session, in what counts, and with the files that it still names. `schedule` is the retry schedule. Notify the
 * workers after it.
 *
 * The row of the former is locked first: of any number of corrections at once one is stored, and none of what is being
 * removed.
 *
 * @throws as `SubmissionWriter.write` does.
 */
export async function storeCorrection(
  db: Transactions,
  row: NewSubmission & { replaces: string },
  schedule: readonly number[],
): Promise<WriteOutcome> {
  const { id, projectId, formId, replaces, uploadIds = [], createdAt } = row;
  const capacity = { ...NO_CAPACITY, ...timesOf(schedule) };
  return db.transaction(async (tx) => {
    const [former] = await tx.select(
      `select status, session_id, array(select id from uploads where submission_id = s.id and id = any($2)) as held
       from submissions s where id = $1 and replaced_by is null for update`,
      [replaces, uploadIds],
    );
    if (former === undefined) {
      const repeated = await findOutcomes(tx, [{ ...row, sessionId: null, uploadIds: [] }]);
      return repeated.get(id) ?? { outcome: 'replaced' };
    }
    const held = [former.held].flat().map(String);
    const fresh = uploadIds.filter((upload) => !held.includes(upload));
    // Counted as the former was, and open for no session.
    const prepared = prepare(
      { ...row, sessionId: null, status: 'replaced', uploadIds: fresh },
      currentTraceparent(),
    );
    const insertOptions = { slot: 0, capacity: () => capacity, onCommitted: () => undefined };
    const [result] = await insertSubmissions(tx, [prepared], insertOptions);
    if (result?.outcome === 'refused') throw result.error;
    if (result === undefined || result.outcome === 'undecided') throw new DatabaseUnavailable();
    if (result.outcome !== 'stored') return result;

    const sessionId = textOrNull(former.session_id);
    const ofFormer = { submissionId: replaces };
    await tx.write(async (em) => {
      await em.nativeUpdate(SubmissionEntity, { id: replaces }, { status: 'replaced', replacedBy: id });
      await em.nativeUpdate(SubmissionEntity, { id }, { status: row.status, replaces, sessionId });
      await em.nativeUpdate(UploadEntity, { ...ofFormer, id: { $in: held } }, { submissionId: id });
      await em.nativeUpdate(SessionEntity, { ...ofFormer, id: sessionId ?? '' }, { submissionId: id });
      await em.nativeUpdate(MailedLinkEntity, { address: replaces }, { usedAt: raw<Date>('now()') });
    });
    if (former.status === 'accepted') {
      const type = 'submission.replaced';
      const event = {
        id: newId('evt', createdAt.getTime()),
        projectId,
        formId,
        type,
        ...ofFormer,
        createdAt,
      };
      const facts = { id: replaces, formId, sessionId, replacedBy: id };
      const body = eventTypes[type].body({ id: event.id, at: createdAt.toISOString() }, facts);
      await insertAnnouncedEvents(tx, type, [{ ...event, body }], schedule);
    }
    return result;
  });
}
