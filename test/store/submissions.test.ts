import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findSession, updateSession } from '../../src/store/sessions.ts';
import { removeSubmission, removeSubmissionsBefore } from '../../src/store/submission-removal.ts';
import { createSubmissionWriter, type SubmissionWriter } from '../../src/store/submission-writer.ts';
import { exportSubmissions, findSubmission, listSubmissions } from '../../src/store/submissions.ts';
import { insertUpload } from '../../src/store/uploads.ts';
import { engines, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { aSubmission, countSubmissions, givenSession } from './given.ts';

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

  it('are listed newest first, by cursor or offset, without spam', async () => {
    const ids = await given('form_listed', 7);
    await writer.write(
      aSubmission({ formId: 'form_listed', id: 'sub_05_spam', status: 'spam', event: null }),
    );

    const first = await listSubmissions(database, 'form_listed', {}, { limit: 3 });
    const second = await listSubmissions(
      database,
      'form_listed',
      {},
      { limit: 3, cursor: first.nextCursor ?? '' },
    );
    const third = await listSubmissions(database, 'form_listed', {}, { limit: 3, offset: 6 });
    const spam = await listSubmissions(database, 'form_listed', { status: 'spam' }, { limit: 3 });

    const newest = ids.toReversed();
    expect(first.items.map(({ id }) => id)).toEqual(newest.slice(0, 3));
    expect(second.items.map(({ id }) => id)).toEqual(newest.slice(3, 6));
    expect(third.items.map(({ id }) => id)).toEqual(newest.slice(6));
    expect([first.nextCursor, third.nextCursor]).toEqual([newest[2], null]);
    expect(spam.items.map(({ id }) => id)).toEqual(['sub_05_spam']);
  });

  it('are filtered by session, source and bounds of time', async () => {
    const session = await givenSession(database, { id: 'sess_filter' });
    const ids = await given('form_filtered', 4);
    const ofSession = aSubmission({
      id: 'sub_90',
      formId: 'form_filtered',
      sessionId: session.id,
      source: 'hosted',
    });
    await writer.write(ofSession);
    const list = async (filter: Parameters<typeof listSubmissions>[2]) => {
      const page = await listSubmissions(database, 'form_filtered', filter, { limit: 10 });
      return page.items.map(({ id }) => id);
    };

    expect(await list({ sessionId: session.id })).toEqual(['sub_90']);
    expect(await list({ source: 'hosted' })).toEqual(['sub_90']);
    expect(await list({ source: 'hosted', sessionId: 'sess_other' })).toEqual([]);
    expect(await list({ afterId: ids[1] ?? '', beforeId: ids[3] ?? '' })).toEqual([ids[2]]);
  });

  it('are exported oldest first in groups', async () => {
    const ids = await given('form_exported', 5);

    const first = await exportSubmissions(database, 'form_exported', {}, { after: '', limit: 3 });
    const rest = await exportSubmissions(
      database,
      'form_exported',
      {},
      { after: first[2]?.id ?? '', limit: 3 },
    );

    expect([...first, ...rest].map(({ id }) => id)).toEqual(ids);
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
      createdAt: new Date(),
      submissionId: null,
    };
    await insertUpload(database, { ...upload, ...file });
    const row = aSubmission({ formId: 'form_removed', sessionId: session.id, uploadIds: ['upl_gone'] });
    const neighbour = aSubmission({ formId: 'form_removed' });
    await Promise.all([writer.write(row), writer.write(neighbour)]);

    const foreign = await database.transaction((tx) => removeSubmission(tx, 'prj_two', row.id));
    const removed = await database.transaction((tx) => removeSubmission(tx, 'prj_one', row.id));

    expect(foreign).toBeNull();
    expect(removed).toEqual({ uploadIds: ['upl_gone'] });
    expect(await findSubmission(database, 'prj_one', row.id)).toBeNull();
    expect(await findSession(database, 'prj_one', session.id)).toMatchObject({ partialAnswers: null });
    const events = await database.select("select submission_id from events where form_id = 'form_removed'");
    expect(events).toEqual([{ submission_id: neighbour.id }]);
    expect(await countSubmissions(database, 'form_removed')).toEqual({ accepted: 1, spam: 0 });
    expect(await database.transaction((tx) => removeSubmission(tx, 'prj_one', row.id))).toBeNull();
  });

  it('are removed in groups once they are older than a bound, spam too', async () => {
    const ids = await given('form_retained', 5);
    await writer.write(
      aSubmission({ id: 'sub_00_spam', formId: 'form_retained', status: 'spam', event: null }),
    );
    const remove = () =>
      database.transaction((tx) => removeSubmissionsBefore(tx, 'form_retained', ids[4] ?? '', 3));

    const groups = [await remove(), await remove(), await remove()];

    expect(groups.map(({ removed }) => removed)).toEqual([3, 2, 0]);
    const left = await listSubmissions(database, 'form_retained', {}, { limit: 10 });
    expect(left.items.map(({ id }) => id)).toEqual([ids[4]]);
    expect(await countSubmissions(database, 'form_retained')).toEqual({ accepted: 1, spam: 0 });
  });

  it('are listed through an index by every filter', async () => {
    await database.execute(`insert into submissions
      select 'sub_plan_' || n, 'prj_one', 'form_plan', 'ver', case when n % 9 = 0 then 'sess_' || n end,
        's' || n % 50, '{}', '{}', 'accepted', null, null, now() from generate_series(1, 20000) n`);
    await database.execute('analyze submissions');
    const plan = async (condition: string) => {
      const rows = await database.select(`explain select * from submissions
        where form_id = 'form_plan' and status = 'accepted' ${condition} order by id desc limit 20`);
      return rows.map((row) => String(row['QUERY PLAN'])).join('\n');
    };

    for (const condition of ['', "and id < 'sub_plan_5'", "and source = 's7'", "and session_id = 'sess_9'"]) {
      expect(await plan(condition)).toMatch(/Index Scan/);
      expect(await plan(condition)).not.toMatch(/Seq Scan/);
    }
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
