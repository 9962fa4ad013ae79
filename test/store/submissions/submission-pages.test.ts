import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/store/database/database.ts';
import type { Page, Queries } from '../../../src/store/database/queries.ts';
import { exportSubmissions, listSubmissions } from '../../../src/store/submissions/submission-pages.ts';
import { findAtOffset } from '../../../src/store/submissions/submission-search.ts';
import {
  createSubmissionWriter,
  type NewSubmission,
  type SubmissionWriter,
} from '../../../src/store/submissions/submission-writer.ts';
import type { ShownSubmission } from '../../../src/store/submissions/submissions.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aSubmission, givenSession } from '../given.ts';

describe.each(engines)('pages of submissions on %s', (engine) => {
  let database: TestDatabase;
  let writer: SubmissionWriter;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
    writer = createSubmissionWriter(database);
  });
  afterAll(() => database[Symbol.asyncDispose]());

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
    const sixth = await findAtOffset(database, 'form_listed', {}, { offset: 6 });
    const third = await listSubmissions(database, 'form_listed', {}, { limit: 3, cursor: sixth ?? '' });
    const beyond = await findAtOffset(database, 'form_listed', {}, { offset: 8 });
    const spam = await listSubmissions(database, 'form_listed', { status: 'spam' }, { limit: 3 });

    const newest = ids.toReversed();
    expect(first.items.map(({ id }) => id)).toEqual(newest.slice(0, 3));
    expect(second.items.map(({ id }) => id)).toEqual(newest.slice(3, 6));
    expect(third.items.map(({ id }) => id)).toEqual(newest.slice(6));
    expect([first.nextCursor, third.nextCursor, beyond]).toEqual([newest[2], null, null]);
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
      { after: first.nextCursor ?? '', limit: 3 },
    );
    const end = await exportSubmissions(
      database,
      'form_exported',
      {},
      { after: rest.nextCursor ?? '', limit: 3 },
    );

    expect([...first.items, ...rest.items].map(({ id }) => id)).toEqual(ids);
    expect(end).toEqual({ items: [], nextCursor: null });
  });

  it.each([
    // Texts that compress to almost nothing, and texts that do not compress at all.
    { kind: 'repetitive', textOf: (bytes: number) => 'x'.repeat(bytes) },
    { kind: 'random', textOf: (bytes: number) => randomBytes(bytes / 2).toString('hex') },
  ])('end a page before $kind answers that make it larger than 2 MiB', async ({ kind, textOf }) => {
    const formId = `form_large_${kind}`;
    const sizes = [...Array.from({ length: 10 }, () => 250_000), 10, 10, 250_000, 10_000];
    const ids = sizes.map((_, index) => `sub_${kind}_${String(index).padStart(2, '0')}`);
    for (const [index, id] of ids.entries()) {
      await writer.write(aSubmission({ formId, id, answers: { text: textOf(sizes[index] ?? 0) } }));
    }
    const { db, bytesRead } = counting(database);

    const pages = await pagesOf((cursor) => listSubmissions(db, formId, {}, { limit: 100, cursor }));
    const few = await listSubmissions(db, formId, {}, { limit: 2 });

    expect(pages.flat().map(({ id }) => id)).toEqual(ids.toReversed());
    expect(pages.map(({ length }) => length)).toEqual([11, 3]);
    expect(few.items.map(({ id }) => id)).toEqual(ids.slice(-2).reverse());
    expect(bytesRead()).toBeLessThan(2 * 11 * 250_000);
  });

  it('are read while another read of large answers gets no answer', async () => {
    const formId = 'form_waiting';
    await writer.write(aSubmission({ formId, id: 'sub_waiting', answers: { text: 'x'.repeat(20_000) } }));
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const silent: Queries = {
      ...database,
      select: (sql, ...rest) => {
        if (!sql.includes('octet_length')) return database.select(sql, ...rest);
        resolve();
        return new Promise(() => undefined);
      },
    };
    void listSubmissions(silent, formId, {}, { limit: 1 });
    await asked;

    const { items } = await listSubmissions(database, formId, {}, { limit: 1 });

    expect(items.map(({ id }) => id)).toEqual(['sub_waiting']);
  });

  it('count metadata by what its numbers take in a message', async () => {
    const metadata = { numbers: Array.from({ length: 8000 }, () => 1) };
    const ids = await given('form_metadata', 50, { metadata });

    const pages = await pagesOf((cursor) =>
      listSubmissions(database, 'form_metadata', {}, { limit: 100, cursor }),
    );

    expect(pages.flat().map(({ id }) => id)).toEqual(ids.toReversed());
    expect(pages[0]?.length).toBeLessThan(25);
  });

  it('leave out of a page what is deleted while it is read', async () => {
    const ids = await given('form_vanishing', 3, { answers: { text: 'x'.repeat(100_000) } });
    const db: Queries = {
      ...database,
      async select(sql, ...rest) {
        const rows = await database.select(sql, ...rest);
        if (!sql.includes('any(')) await database.execute('delete from submissions where id = $1', [ids[1]]);
        return rows;
      },
    };

    const listed = await listSubmissions(db, 'form_vanishing', {}, { limit: 3 });
    const exported = await exportSubmissions(db, 'form_vanishing', {}, { after: '', limit: 3 });

    expect(listed.items.map(({ id }) => id)).toEqual([ids[2], ids[0]]);
    expect(exported.items.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
  });

  it('are exported in pieces of about the bytes that were asked for', async () => {
    const answers = { text: 'x'.repeat(100_000) };
    const ids = await given('form_pieces', 10, { answers });
    const { db, bytesRead } = counting(database);
    const range = { limit: 150, bytes: 250_000 };

    const pages = await pagesOf((cursor) =>
      exportSubmissions(db, 'form_pieces', {}, { ...range, after: cursor ?? '' }),
    );

    expect(pages.flat().map(({ id }) => id)).toEqual(ids);
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 2, 2, 2]);
    expect(bytesRead()).toBeLessThan(2 * 10 * 100_000);
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
  async function given(formId: string, count: number, fields: Partial<NewSubmission> = {}) {
    const rows = Array.from({ length: count }, (_, index) =>
      aSubmission({ id: `sub_${String(index).padStart(2, '0')}_${formId}`, formId, ...fields }),
    );
    await Promise.all(rows.map((row) => writer.write(row)));
    return rows.map(({ id }) => id);
  }
});

/** Goes through all pages. */
async function pagesOf(read: (cursor: string | undefined) => Promise<Page<ShownSubmission>>) {
  const pages: ShownSubmission[][] = [];
  for (let cursor: string | undefined; ; ) {
    const { items, nextCursor } = await read(cursor);
    if (items.length > 0) pages.push(items);
    if (nextCursor === null) return pages;
    cursor = nextCursor;
  }
}

/** The same database, and how many bytes of answers were read from it. */
function counting(database: Database) {
  let bytes = 0;
  const db: Queries = {
    ...database,
    async select(...statement) {
      const rows = await database.select(...statement);
      for (const { answers } of rows) bytes += JSON.stringify(answers ?? '').length;
      return rows;
    },
  };
  return { db, bytesRead: () => bytes };
}
