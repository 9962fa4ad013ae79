import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queries } from '../../../src/store/database/database.ts';
import { createLoader } from '../../../src/store/database/queries.ts';
import { findAnySession } from '../../../src/store/sessions/sessions.ts';
import { createSubmissionWriter } from '../../../src/store/submissions/submission-writer.ts';
import { findSubmission } from '../../../src/store/submissions/submissions.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { aSubmission, givenSession } from '../given.ts';

describe.each(engines)('a look-up that gathers its callers, on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('asks once for all callers of one turn, and gives each its own', async () => {
    const { find, asked } = aLookUp();
    await keep(database, 'turn_a', 'turn_b', 'turn_c');

    const found = await Promise.all([
      find(database, 'turn_b'),
      find(database, 'turn_unknown'),
      find(database, 'turn_a'),
      Promise.resolve().then(() => find(database, 'turn_c')),
    ]);

    expect(found.map((each) => each?.value)).toEqual(['of turn_b', undefined, 'of turn_a', 'of turn_c']);
    expect(found[1]).toBeNull();
    expect(asked).toEqual([['turn_b', 'turn_unknown', 'turn_a', 'turn_c']]);
  });

  it('asks again for callers of a later turn, also while the first still wait', async () => {
    const { find, asked } = aLookUp();
    await keep(database, 'early', 'late');

    const early = [find(database, 'early'), find(database, 'late')];
    await yieldToEventLoop();
    const late = [find(database, 'late')];

    expect(await Promise.all([...early, ...late])).toMatchObject([
      { id: 'early' },
      { id: 'late' },
      { id: 'late' },
    ]);
    expect(asked).toEqual([['early', 'late'], ['late']]);
  });

  it('asks for no more than 64 at once', async () => {
    const { find, asked } = aLookUp();
    const ids = Array.from({ length: 130 }, (_, n) => `many_${n}`);
    await keep(database, ...ids);

    const found = await Promise.all(ids.map((id) => find(database, id)));

    expect(found.map((each) => each?.id)).toEqual(ids);
    expect(asked.map(({ length }) => length)).toEqual([64, 64, 2]);
  });

  it('gives the same row to all who ask for it', async () => {
    const { find, asked } = aLookUp();
    await keep(database, 'wanted');

    const found = await Promise.all(['wanted', 'nobody', 'wanted', 'nobody'].map((id) => find(database, id)));

    expect(found).toEqual([
      { id: 'wanted', value: 'of wanted' },
      null,
      { id: 'wanted', value: 'of wanted' },
      null,
    ]);
    expect(asked).toHaveLength(1);
  });

  it('tells all callers of the turn that it failed, and works in the next', async () => {
    const { find } = aLookUp();
    await keep(database, 'healthy');

    // No text of the database holds a zero byte.
    const failed = await Promise.allSettled(
      ['healthy', 'zero\0byte', 'healthy'].map((id) => find(database, id)),
    );

    expect(failed).toMatchObject(Array(3).fill({ status: 'rejected', reason: { code: '22021' } }));
    expect(await find(database, 'healthy')).toMatchObject({ id: 'healthy' });
  });

  it('keeps nothing: a change is seen by whoever asks after it', async () => {
    const { find } = aLookUp();
    const values = [await find(database, 'changing')];

    await keep(database, 'changing');
    values.push(await find(database, 'changing'));
    await database.execute("update installation set value = 'changed' where name = 'changing'");
    values.push(await find(database, 'changing'));
    await database.execute("delete from installation where name = 'changing'");
    values.push(await find(database, 'changing'));

    expect(values.map((each) => each?.value ?? null)).toEqual([null, 'of changing', 'changed', null]);
  });

  it('asks a transaction for its own callers alone', async () => {
    const { find, asked } = aLookUp();
    const beside: ReturnType<typeof find>[] = [];

    const failing = database.transaction(async (tx) => {
      await keep(tx, 'uncommitted');
      beside.push(find(database, 'uncommitted'));
      expect(await find(tx, 'uncommitted')).toMatchObject({ id: 'uncommitted' });
      throw new Error('no');
    });

    await expect(failing).rejects.toThrow('no');
    expect(await Promise.all(beside)).toEqual([null]);
    expect(asked).toEqual([['uncommitted'], ['uncommitted']]);
  });

  it('does not wait for the reads of others who ask in the same turn', async () => {
    const { find } = aLookUp();
    await keep(database, 'awaited');
    const answered = Promise.withResolvers<void>();
    const as = <T>(reader: string, work: () => Promise<T>) =>
      database.slots.within({ reader, readsMuch: false }, work);
    const hanging = Array.from({ length: 100 }, () =>
      as('strangers', () => database.read(() => answered.promise)),
    );

    const order: string[] = [];
    const found = ['strangers', 'prj_a'].map((reader) =>
      as(reader, () => find(database, 'awaited')).finally(() => order.push(reader)),
    );
    await until(() => order.length > 0).finally(answered.resolve);

    const each = { id: 'awaited', value: 'of awaited' };
    expect(await Promise.all(found)).toEqual([each, each]);
    expect(order).toEqual(['prj_a', 'strangers']);
    await Promise.all(hanging);
  });

  it('finds a hundred submissions at once, each for its own project alone', async () => {
    const writer = createSubmissionWriter(database);
    const rows = Array.from({ length: 100 }, (_, n) =>
      aSubmission({ answers: { n }, projectId: n % 3 === 0 ? 'prj_two' : 'prj_one' }),
    );
    await Promise.all(rows.map((row) => writer.write(row)));
    const { counted, asked } = counting(database);

    const found = await Promise.all(rows.map(({ id }) => findSubmission(counted, 'prj_one', id)));

    expect(found.map((each) => each && [each.id, each.answers])).toEqual(
      rows.map(({ id, answers, projectId }) => (projectId === 'prj_one' ? [id, answers] : null)),
    );
    expect(asked.map(({ length }) => length)).toEqual([64, 36]);
  });

  it('finds a hundred sessions at once, by whatever id was sent', async () => {
    const sessions = await Promise.all(
      Array.from({ length: 90 }, (_, n) => givenSession(database, { expiresIn: n === 0 ? 0 : 60 })),
    );
    const hostile = [
      '',
      '"',
      '\\',
      '{}',
      ',',
      'NULL',
      "' or true --",
      '","',
      `${sessions[1]?.id} `,
      '\ud800',
    ];
    const { counted, asked } = counting(database);

    const ids = [...sessions.map(({ id }) => id), ...hostile];
    const found = await Promise.all(ids.map((id) => findAnySession(counted, id)));

    expect(found.map((each) => each?.id ?? null)).toEqual([
      ...sessions.map(({ id }) => id),
      ...hostile.map(() => null),
    ]);
    expect(found.slice(0, 2).map((each) => each?.status)).toEqual(['expired', 'open']);
    expect(asked.map(({ length }) => length)).toEqual([64, 36]);
  });
});

it('never asks one database for the callers of another', async () => {
  await using one = await openTestDatabase('postgres');
  await using other = await openTestDatabase('postgres');
  const { find, asked } = aLookUp();
  await keep(one, 'both', 'of one');
  await keep(other, 'both', 'of other');
  await other.execute("update installation set value = 'changed' where name = 'both'");
  const all = ['both', 'of one', 'of other'];

  const found = await Promise.all([one, other].flatMap((database) => all.map((id) => find(database, id))));

  const values = found.map((each) => each?.value ?? null);
  expect(values.slice(0, 3)).toEqual(['of both', 'of of one', null]);
  expect(values.slice(3)).toEqual(['changed', null, 'of of other']);
  expect(asked).toEqual([all, all]);
});

/** A look-up in a table that every database has, and the ids that each of its calls asked for. */
function aLookUp() {
  const asked: (readonly string[])[] = [];
  const find = createLoader(async (db, ids) => {
    asked.push(ids);
    const rows = await db.select('select name, value from installation where name = any($1)', [ids]);
    return rows.map(({ name, value }) => ({ id: String(name), value: String(value) }));
  });
  return { find, asked };
}

/** The database, and the ids that each of its queries asked for. */
function counting(database: Queries) {
  const asked: unknown[][] = [];
  const counted: Queries = {
    ...database,
    select: (sql, params = [], options = {}) => {
      asked.push(params.flat());
      return database.select(sql, params, options);
    },
  };
  return { counted, asked };
}

async function keep(db: Queries, ...names: string[]): Promise<void> {
  await db.execute("insert into installation (name, value) select n, 'of ' || n from unnest($1::text[]) n", [
    names,
  ]);
}
