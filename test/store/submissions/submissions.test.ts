import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findSession, updateSession } from '../../../src/store/sessions/sessions.ts';
import { listSubmissions } from '../../../src/store/submissions/submission-pages.ts';
import {
  removeSubmission,
  removeSubmissionsBefore,
} from '../../../src/store/submissions/submission-removal.ts';
import {
  createSubmissionWriter,
  type SubmissionWriter,
} from '../../../src/store/submissions/submission-writer.ts';
import { findSubmission } from '../../../src/store/submissions/submissions.ts';
import { insertUpload } from '../../../src/store/uploads.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aSubmission, countSubmissions, givenSession } from '../given.ts';

const announcement = { at: Date.now(), schedule: [0] };

describe.each(engines)('submissions on %s', (engine) => {
  let database: TestDatabase;
  let writer: SubmissionWriter;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
    writer = createSubmissionWriter(database);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('are found by their own project alone', async () => {
    const row = aSubmission({ formId: 'form_found' });
    await writer.write(row);

    expect(await findSubmission(database, 'prj_one', row.id)).toMatchObject({ answers: row.answers });
    expect(await findSubmission(database, 'prj_two', row.id)).toBeNull();
  });

  it('go with all that holds their answers, and leave their neighbours', async () => {
    const session = await givenSession(database, { id: 'sess_removed' });
    await database.transaction((tx) =>
      updateSession(tx, session.id, { partialAnswers: { email: 'secret' } }),
    );
    const upload = {
      id: 'upl_gone',
      projectId: 'prj_one',
      formId: 'form_removed',
      fieldId: 'cv',
      filename: 'cv',
    };
    const file = {
      contentType: 'text/plain',
      size: 1,
      sha256: 'ab',
      keyless: false,
      createdAt: new Date(),
      submissionId: null,
    };
    await insertUpload(database, { ...upload, ...file });
    const row = aSubmission({ formId: 'form_removed', sessionId: session.id, uploadIds: ['upl_gone'] });
    const neighbour = aSubmission({ formId: 'form_removed' });
    await Promise.all([writer.write(row), writer.write(neighbour)]);

    const foreign = await database.transaction((tx) =>
      removeSubmission(tx, { projectId: 'prj_two', id: row.id }, announcement),
    );
    const removed = await database.transaction((tx) =>
      removeSubmission(tx, { projectId: 'prj_one', id: row.id }, announcement),
    );

    expect(foreign).toBe(false);
    expect(removed).toBe(true);
    expect(await database.select('select kind, subject from removals')).toEqual([
      { kind: 'file', subject: 'upl_gone' },
    ]);
    expect(await findSubmission(database, 'prj_one', row.id)).toBeNull();
    expect(await findSession(database, 'prj_one', session.id)).toMatchObject({ partialAnswers: null });
    const events = await database.select("select submission_id from events where form_id = 'form_removed'");
    expect(events).toEqual([{ submission_id: neighbour.id }]);
    expect(await countSubmissions(database, 'form_removed')).toEqual({ accepted: 1, spam: 0 });
    expect(
      await database.transaction((tx) =>
        removeSubmission(tx, { projectId: 'prj_one', id: row.id }, announcement),
      ),
    ).toBe(false);
  });

  it('are removed in groups once they are older than a bound, spam too', async () => {
    const ids = await given('form_retained', 5);
    await writer.write(
      aSubmission({ id: 'sub_00_spam', formId: 'form_retained', status: 'spam', event: null }),
    );
    const remove = () =>
      database.transaction((tx) =>
        removeSubmissionsBefore(
          tx,
          { formId: 'form_retained', beforeId: ids[4] ?? '', limit: 3 },
          announcement,
        ),
      );

    const groups = [await remove(), await remove(), await remove()];

    expect(groups).toEqual([3, 2, 0]);
    const left = await listSubmissions(database, 'form_retained', {}, { limit: 10 });
    expect(left.items.map(({ id }) => id)).toEqual([ids[4]]);
    expect(await countSubmissions(database, 'form_retained')).toEqual({ accepted: 1, spam: 0 });
  });

  /** Stores so many submissions of a form, and returns their ids, oldest first. */
  async function given(formId: string, count: number): Promise<string[]> {
    const rows = Array.from({ length: count }, (_, index) =>
      aSubmission({ id: `sub_0${index}_${formId}`, formId }),
    );
    await Promise.all(rows.map((row) => writer.write(row)));
    return rows.map(({ id }) => id);
  }
});
