import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Database, Queries } from '../../../src/store/database/database.ts';
import { DatabaseUnavailable, RETRY_WINDOW_MS } from '../../../src/store/database/faults.ts';
import { findSession } from '../../../src/store/sessions/sessions.ts';
import { createSubmissionWriter } from '../../../src/store/submissions/submission-writer.ts';
import { findSubmission } from '../../../src/store/submissions/submissions.ts';
import { findUnclaimedUploads, insertUpload } from '../../../src/store/uploads.ts';
import { emptyTables, engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aSubmission, countSubmissions, givenSession } from '../given.ts';

describe.each(engines)('the submission writer on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  beforeEach(() => emptyTables(database));
  afterAll(() => database[Symbol.asyncDispose]());

  it('stores the answers as they were given, with their event', async () => {
    const writer = createSubmissionWriter(database);
    const row = aSubmission({ metadata: { ['__proto__']: 'kept', café: '\u{1F600}' } });

    const outcome = await writer.write(row);

    expect(outcome).toEqual({ outcome: 'stored' });
    const { event, ...submission } = row;
    const body = `${event?.body?.start}${JSON.stringify(row.answers)}${event?.body?.end}`;
    const stored = await findSubmission(database, 'prj_one', row.id);
    expect(stored).toEqual(submission);
    expect(Object.keys(stored?.answers ?? {})).toEqual(['zeta', 'alpha', 'number']);
    const events = await database.select('select id, type, submission_id, body, fanned_out_at from events');
    expect(events).toEqual([
      { id: event?.id, type: event?.type, submission_id: row.id, body, fanned_out_at: null },
    ]);
  });

  it('writes what arrives together in few commits', async () => {
    let commits = 0;
    const writer = createSubmissionWriter(database, { onCommitted: () => (commits += 1) });

    const outcomes = await Promise.all(Array.from({ length: 1_200 }, () => writer.write(aSubmission())));

    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['stored']));
    expect(commits).toBe(engine === 'postgres' ? 3 : 12);
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 1_200, spam: 0 });
  });

  it('stores a submission of one project before those that wait of another', async () => {
    let commits = 0;
    const writer = createSubmissionWriter(database, { onCommitted: () => (commits += 1) });
    const flood = Array.from({ length: 1_200 }, () => writer.write(aSubmission()));

    await writer.write(aSubmission({ projectId: 'prj_two', formId: 'form_two' }));

    // A server has the next group by then.
    expect(commits).toBeLessThan(3);
    await Promise.all(flood);
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 1_200, spam: 0 });
    expect(await countSubmissions(database, 'form_two')).toEqual({ accepted: 1, spam: 0 });
  });

  it('stores small submissions of one project before large ones that wait of another', async () => {
    let commits = 0;
    const writer = createSubmissionWriter(database, { onCommitted: () => (commits += 1) });
    const large = () => aSubmission({ answers: { text: 'x'.repeat(700_000) } });
    const flood: Promise<unknown>[] = [];
    const small: Promise<unknown>[] = [];
    for (let n = 0; n < 10; n += 1) {
      flood.push(writer.write(large()), writer.write(large()));
      small.push(writer.write(aSubmission({ projectId: 'prj_two', formId: 'form_two' })));
    }

    await Promise.all(small);

    // A server has the next group by then.
    expect(commits).toBeLessThan(3);
    await Promise.all(flood);
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 20, spam: 0 });
  });

  it('stores a submission of one project while the group of another is being written', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const held: Database = {
      ...database,
      execute: async (sql, params, options) => {
        if (JSON.stringify(params).includes('form_one')) {
          begin();
          await released;
        }
        return database.execute(sql, params, options);
      },
    };
    const writer = createSubmissionWriter(held);
    const first = writer.write(aSubmission());
    await begun;
    const next = writer.write(aSubmission());

    const other = await writer.write(aSubmission({ projectId: 'prj_two', formId: 'form_two' }));
    const meanwhile = await countSubmissions(database, 'form_one');
    release();

    expect(other).toEqual({ outcome: 'stored' });
    expect(meanwhile).toEqual({ accepted: 0, spam: 0 });
    expect([await first, await next]).toEqual([{ outcome: 'stored' }, { outcome: 'stored' }]);
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 2, spam: 0 });
  });

  it('refuses a bad row alone and stores its neighbours', async () => {
    const writer = createSubmissionWriter(database);
    const rows = Array.from({ length: 40 }, (_, index) =>
      aSubmission(index === 17 || index === 18 ? { source: 'a\u0000b' } : {}),
    );

    const results = await Promise.allSettled(rows.map((row) => writer.write(row)));

    expect(results.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([17, 18]);
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 38, spam: 0 });
    expect(await count(database, 'events')).toBe(38);
  });

  it('keeps the first submission of an idempotency key, within a group and over groups', async () => {
    const writer = createSubmissionWriter(database);
    const keyed = (fingerprint: string) =>
      aSubmission({ idempotencyKey: 'key', requestFingerprint: fingerprint });
    const rows = [keyed('first'), keyed('second'), keyed('third')];

    const together = await Promise.all(rows.map((row) => writer.write(row)));
    const later = await writer.write(keyed('later'));
    const elsewhere = await writer.write(aSubmission({ formId: 'form_two', idempotencyKey: 'key' }));

    const first = rows[together.findIndex(({ outcome }) => outcome === 'stored')];
    const duplicate = {
      outcome: 'duplicate',
      submissionId: first?.id,
      fingerprint: first?.requestFingerprint,
    };
    expect(together.filter(({ outcome }) => outcome === 'duplicate')).toEqual([duplicate, duplicate]);
    expect(later).toEqual(duplicate);
    expect(elsewhere).toEqual({ outcome: 'stored' });
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 1, spam: 0 });
    expect(await count(database, 'events')).toBe(2);
  });

  it('keeps one submission of a key that two writers race for', async () => {
    const writers = [createSubmissionWriter(database), createSubmissionWriter(database)];
    const keys = Array.from({ length: 60 }, (_, index) => `key-${index}`);

    const outcomes = await Promise.all(
      writers.flatMap((writer, turn) =>
        (turn === 0 ? keys : keys.toReversed()).map((key) =>
          writer.write(aSubmission({ idempotencyKey: key })),
        ),
      ),
    );

    expect(outcomes.filter(({ outcome }) => outcome === 'stored')).toHaveLength(60);
    expect(outcomes.filter(({ outcome }) => outcome === 'duplicate')).toHaveLength(60);
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 60, spam: 0 });
  });

  it('lets a session be submitted once, whoever races', async () => {
    const writers = [createSubmissionWriter(database), createSubmissionWriter(database)];
    const session = await givenSession(database);
    const rows = Array.from({ length: 6 }, () => aSubmission({ sessionId: session.id }));

    const outcomes = await Promise.all(rows.map(async (row, index) => writers[index % 2]?.write(row)));

    const winner = rows[outcomes.findIndex((outcome) => outcome?.outcome === 'stored')];
    expect(outcomes.filter((outcome) => outcome?.outcome === 'stored')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome?.outcome === 'session_submitted')).toEqual(
      Array(5).fill({ outcome: 'session_submitted', submissionId: winner?.id }),
    );
    const submitted = await findSession(database, 'prj_one', session.id);
    expect(submitted).toMatchObject({ status: 'submitted', submissionId: winner?.id });
    expect(await count(database, 'submissions')).toBe(1);
  });

  it('refuses an expired session, and does not use up an open one for a repeated key', async () => {
    const writer = createSubmissionWriter(database);
    const open = await givenSession(database, { id: 'sess_open' });
    const expired = await givenSession(database, { id: 'sess_expired', expiresIn: 0 });
    const first = aSubmission({ idempotencyKey: 'key' });
    await writer.write(first);

    const repeated = await writer.write(aSubmission({ idempotencyKey: 'key', sessionId: open.id }));
    const late = await writer.write(aSubmission({ sessionId: expired.id }));

    expect(repeated).toMatchObject({ outcome: 'duplicate', submissionId: first.id });
    expect(late).toEqual({ outcome: 'session_expired' });
    expect(await findSession(database, 'prj_one', open.id)).toMatchObject({ status: 'open' });
    expect(await count(database, 'submissions')).toBe(1);
  });

  it('answers as stored when the same row is written again after a lost answer', async () => {
    const session = await givenSession(database);
    const row = aSubmission({ idempotencyKey: 'key', sessionId: session.id });
    await createSubmissionWriter(database).write(row);

    const again = await createSubmissionWriter(database).write(row);

    expect(again).toEqual({ outcome: 'stored' });
    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 1, spam: 0 });
    expect(await count(database, 'events')).toBe(1);
  });

  it('counts spam apart and tells nobody of it', async () => {
    const writer = createSubmissionWriter(database);

    await writer.write(aSubmission({ status: 'spam', event: null }));

    expect(await countSubmissions(database, 'form_one')).toEqual({ accepted: 0, spam: 1 });
    expect(await count(database, 'events')).toBe(0);
  });

  it('makes the named uploads the submission’s', async () => {
    const upload = {
      id: 'upl_1',
      projectId: 'prj_one',
      formId: 'form_one',
      fieldId: 'cv',
      filename: 'cv.pdf',
    };
    const file = {
      contentType: 'application/pdf',
      size: 3,
      sha256: 'ab',
      keyless: false,
      createdAt: new Date(),
      submissionId: null,
    };
    await insertUpload(database, { ...upload, ...file });
    const row = aSubmission({ uploadIds: ['upl_1'] });

    await createSubmissionWriter(database).write(row);

    expect(await database.select('select submission_id from uploads')).toEqual([{ submission_id: row.id }]);
    expect(await findUnclaimedUploads(database, 'form_one', ['upl_1'])).toEqual([]);
  });

  it('turns rows away at once when too many wait, and stores those it took', async () => {
    const byCount = createSubmissionWriter(database, { maxWaiting: 5 });
    const byBytes = createSubmissionWriter(database, { maxWaitingBytes: 5_000 });
    const large = () => aSubmission({ answers: { text: 'x'.repeat(2_000) } });

    const counted = await Promise.allSettled(Array.from({ length: 9 }, () => byCount.write(aSubmission())));
    const weighed = await Promise.allSettled(Array.from({ length: 4 }, () => byBytes.write(large())));

    expect(counted.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    expect(weighed.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(counted.at(-1)).toMatchObject({ reason: { name: 'Overloaded' } });
    await expect(byCount.write(aSubmission())).resolves.toEqual({ outcome: 'stored' });
    expect(await count(database, 'submissions')).toBe(8);
  });

  it('refuses what has waited too long for those before it, and stores what comes later', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const held: Database = {
      ...database,
      execute: async (...statement) => {
        await released;
        return database.execute(...statement);
      },
    };
    const writer = createSubmissionWriter(held);
    const first = writer.write(aSubmission());
    await yieldToEventLoop();
    await yieldToEventLoop();
    const late = writer.write(aSubmission()).catch((error: unknown) => error);
    vi.advanceTimersByTime(RETRY_WINDOW_MS + 1);
    const fresh = writer.write(aSubmission());

    release();

    expect(await late).toBeInstanceOf(DatabaseUnavailable);
    expect([await first, await fresh]).toEqual([{ outcome: 'stored' }, { outcome: 'stored' }]);
    expect(await count(database, 'submissions')).toBe(2);
  });

  it('stores what waits before it closes, and takes nothing after', async () => {
    const writer = createSubmissionWriter(database);
    const waiting = writer.write(aSubmission());

    await writer.close();

    expect(await waiting).toEqual({ outcome: 'stored' });
    await expect(writer.write(aSubmission())).rejects.toMatchObject({ name: 'DatabaseUnavailable' });
  });
});

async function count(db: Queries, table: string): Promise<number> {
  const [row] = await db.select(`select count(*)::int as count from ${table}`);
  return Number(row?.count);
}
