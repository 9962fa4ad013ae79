import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedEngine, openPglite } from '../../../src/store/database/pglite.ts';
import type { Row } from '../../../src/store/database/queries.ts';

describe('the statements that the embedded database keeps planned', () => {
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    engine = await openPglite({ log: console });
    await engine.query(
      `create table kept (id text primary key, number int, big bigint, yes boolean, body json, at timestamptz, tags text[])`,
      [],
    );
  });
  afterAll(() => engine.close());

  const planned = (sql: string, params: unknown[] = []) => engine.query(sql, params, true);
  const unplanned = (sql: string, params: unknown[] = []) => engine.query(sql, params);

  it.each<[string, unknown[]]>([
    [
      'of every type',
      [
        'Ünï \u{1F600}',
        7,
        2 ** 40,
        true,
        '{"z":[1,null],"a":"\\u00e9"}',
        '2026-01-02T03:04:05.678Z',
        ['x', 'y'],
      ],
    ],
    ['that are null', ['null', null, null, null, null, null, null]],
    ['that are undefined', ['undefined', undefined, undefined, undefined, undefined, undefined, undefined]],
    ['that are empty or zero', ['', 0, 0, false, '[]', '0001-01-01T00:00:00Z', []]],
    ['that are text', ['7', '-7', '9007199254740993', true, '"NULL"', 'infinity', '{NULL,"NULL"}']],
    ['that are objects', ['objects', -1, 9007199254740993n, false, { a: [1] }, new Date(0), [null, '']]],
    [
      'that look like SQL',
      [`'; drop table kept; --`, 1, 1, true, `"$1"`, 'epoch', ['"', '\\', ',', '{}', "'"]],
    ],
    ['that are long', ['long', 1, 1, true, JSON.stringify('ä'.repeat(300_000)), null, ['x'.repeat(300_000)]]],
  ])('take parameters and give rows like others: values %s', async (_which, params) => {
    const insert = `insert into kept (id, number, big, yes, body, at, tags)
       values ($1, $2, $3, $4, $5::json, date_trunc('day', $6::timestamptz), $7) returning *`;
    const select = 'select *, at::date as day, at::timestamp as local from kept where id = $1';

    const inserted = await planned(insert, params);
    const selected = await planned(select, params.slice(0, 1));

    expect(selected).toEqual(await unplanned(select, params.slice(0, 1)));
    expect(await unplanned('delete from kept where id = $1 returning *', params.slice(0, 1))).toEqual(
      inserted,
    );
    expect(await unplanned(insert, params)).toEqual(inserted);
    expect(selected).toMatchObject(inserted);
  });

  it('give the last of several columns of one name, and no rows where nothing is found', async () => {
    expect(await planned('select 1 as a, 2 as b, 3 as a')).toEqual([{ a: 3, b: 2 }]);
    expect(await planned('select id from kept where false')).toEqual([]);
  });

  it('give no rows where there are no columns', async () => {
    await unplanned("insert into kept (id) values ('without columns')");
    const update = "update kept set number = $1 where id = 'without columns'";

    expect([await planned(update, [1]), await planned(update, [2])]).toEqual([[], []]);

    expect(await unplanned("select number from kept where id = 'without columns'")).toEqual([{ number: 2 }]);
  });

  it('are prepared once for each text, by a name of its own', async () => {
    const texts = ['select $1::int as one', 'select $1::int as other'];
    const runs = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => planned(texts[n % 2] ?? '', [n])));

    await runs(2);
    await runs(8);

    const prepared = await preparedOf(texts);
    expect(prepared).toEqual(texts.map((statement) => ({ statement, runs: 5 })));
    expect(await preparedOf(['select $1::int as never'])).toEqual([]);
  });

  it('give each of many runs at once its own rows', async () => {
    const numbers = Array.from({ length: 200 }, (_, n) => n);

    const rows = await Promise.all(
      numbers.map((n) =>
        n % 3 === 0
          ? planned('select $1::text as text', [`t${n}`])
          : planned('select $1::int as number, n from generate_series(1, $2::int) n', [n, n % 4]),
      ),
    );

    expect(rows).toEqual(
      numbers.map((n) =>
        n % 3 === 0
          ? [{ text: `t${n}` }]
          : Array.from({ length: n % 4 }, (_, row) => ({ number: n, n: row + 1 })),
      ),
    );
  });

  it.each([
    ['a value that is there already', 'insert into kept (id) values ($1)', 'twice', '23505', 'once'],
    ['a parameter of another type', 'select $1::int as number', 'no number', '22P02', '7'],
    ['a parameter with a zero byte', 'select $1::text as text', 'a\0b', '22021', 'ab'],
    [
      'a fault in the middle of the rows',
      'select 1 / ($1::int - n) from generate_series(1, 9) n',
      5,
      '22012',
      0,
    ],
  ])('fail with the database’s code at %s, and work again', async (_which, sql, bad, code, good) => {
    await unplanned("insert into kept (id) values ('twice') on conflict do nothing");

    const refused = planned(sql, [bad]);
    const next = planned(sql, [good]);

    await expect(refused).rejects.toMatchObject({ code });
    await expect(next).resolves.toBeInstanceOf(Array);
    expect(await preparedOf([sql])).toHaveLength(1);
  });

  it('fail at a number of parameters that is not theirs, and work again', async () => {
    const sql = 'select $1::text as text, $2::int as number';

    await expect(planned(sql, ['x'])).rejects.toMatchObject({ code: '08P01' });
    await expect(planned(sql, ['x', 1, 2])).rejects.toMatchObject({ code: '08P01' });

    expect(await planned(sql, ['x', 1])).toEqual([{ text: 'x', number: 1 }]);
  });

  it('refuse a value that has no text of its own, and work again', async () => {
    const sql = 'select $1::numeric::text as text';

    await expect(planned(sql, [1.5])).rejects.toThrow('to be given as text');

    expect(await planned(sql, ['1.5'])).toEqual([{ text: '1.5' }]);
  });

  it('may be tried again after a text was refused, which is in nobody’s way', async () => {
    const early = 'select number from made_later where number = $1';

    const refused = await Promise.allSettled([
      planned(early, [1]),
      planned('selekt'),
      planned('select $1::int as after', [2]),
      planned(early, [1]),
    ]);
    await unplanned('create table made_later as select 1 as number');

    expect(refused).toMatchObject([
      { status: 'rejected', reason: { code: '42P01' } },
      { status: 'rejected', reason: { code: '42601' } },
      { status: 'fulfilled', value: [{ after: 2 }] },
      { status: 'rejected', reason: { code: '42P01' } },
    ]);
    expect(await planned(early, [1])).toEqual([{ number: 1 }]);
    expect(await planned('select $1::int as after', [3])).toEqual([{ after: 3 }]);
  });

  it('wait for a transaction, and take no part in it when it is rolled back', async () => {
    const insert = 'insert into kept (id, number) select $1, count(*) from kept where id = $2';
    await planned(insert, ['known', '']);
    const beside: Promise<Row[]>[] = [];

    const failing = engine.em.fork().transactional(async (em) => {
      await em.execute("insert into kept (id) values ('inside')");
      beside.push(planned(insert, ['beside', 'inside']), planned("select 'first' as run", []));
      await new Promise((turn) => setTimeout(turn, 20));
      await em.execute("insert into kept (id) values ('inside too')");
      throw new Error('no');
    });

    await expect(failing).rejects.toThrow('no');
    expect(await Promise.all(beside)).toEqual([[], [{ run: 'first' }]]);
    const stored = await unplanned("select id, number from kept where id ~ 'side'");
    expect(stored).toEqual([{ id: 'beside', number: 0 }]);
  });

  it('see what a transaction stored that they waited for', async () => {
    const count = "select count(*)::int as count from kept where id like 'committed%'";
    const beside: Promise<Row[]>[] = [];

    await engine.em.fork().transactional(async (em) => {
      await em.execute("insert into kept (id) values ('committed')");
      beside.push(planned(count));
      await em.execute("insert into kept (id) values ('committed too')");
    });

    expect(await Promise.all(beside)).toEqual([[{ count: 2 }]]);
  });

  it('let those hear who listen', async () => {
    let heard = 0;
    const stop = await engine.listen('wake', () => (heard += 1));

    await planned("select pg_notify('wake', '')");

    await expect.poll(() => heard).toBe(1);
    await stop();
  });

  /** The prepared statements of these texts, and how often they ran. */
  async function preparedOf(texts: string[]): Promise<Row[]> {
    return unplanned(
      `select statement, (generic_plans + custom_plans)::int as runs from pg_prepared_statements
       where statement = any($1) order by statement`,
      [texts],
    );
  }
});

describe('a closed embedded database', () => {
  it('has answered what was asked before it closed', async () => {
    const engine = await openPglite({ log: console });
    await engine.query('select 1 as number', [], true);
    const asked = [engine.query('select 1 as number', [], true), engine.query('select 2 as number', [])];

    await engine.close();

    expect(await Promise.all(asked)).toEqual([[{ number: 1 }], [{ number: 2 }]]);
  });

  it('refuses the statements that it kept planned, and others', async () => {
    const engine = await openPglite({ log: console });
    await engine.query('select 1 as known', [], true);
    await engine.close();

    await expect(engine.query('select 1 as known', [], true)).rejects.toThrow('closed');
    await expect(engine.query('select 1 as unknown', [], true)).rejects.toThrow('closed');
  });
});
