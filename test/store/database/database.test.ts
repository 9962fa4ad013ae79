import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { entities } from '../../../src/store/database/engine.ts';
import { migrations } from '../../../src/store/migrations/index.ts';
import { createServerDatabase, engines, openTestDatabase } from '../../support/database.ts';
import { openDatabaseProxy } from '../../support/database-proxy.ts';
import { runOn } from '../../support/postgres.ts';

describe.each(engines)('the database on %s', (engine) => {
  it('answers by its own clock', async () => {
    await using database = await openTestDatabase(engine);

    const before = Date.now();
    const now = await database.now();
    const after = Date.now();

    // Both clocks are this machine's, and each is rounded.
    expect(now.getTime()).toBeGreaterThanOrEqual(before - 1);
    expect(now.getTime()).toBeLessThanOrEqual(after + 1);
    expect(await database.isReady()).toBe(true);
  });

  it('has after its migrations the tables that the entities describe', async () => {
    await using database = await openTestDatabase(engine);

    const difference = await database.schemaDifference();

    expect(difference).toBe('');
    const tables = await database.select(
      "select table_name from information_schema.tables where table_schema = 'public'",
    );
    expect(tables).toHaveLength(entities.length + 1);
  });

  it('keeps nothing of a transaction that fails', async () => {
    await using database = await openTestDatabase(engine);

    const failing = database.transaction(async (tx) => {
      await keep(tx, 'inside');
      throw new Error('no');
    });

    await expect(failing).rejects.toThrow('no');
    await database.transaction((tx) => keep(tx, 'kept'));
    expect(await database.select('select name from installation')).toEqual([{ name: 'kept' }]);
  });

  it('makes queries wait for a transaction rather than take part in it', async () => {
    await using database = await openTestDatabase(engine);
    const { promise: opened, resolve } = Promise.withResolvers<void>();
    const failing = database.transaction(async (tx) => {
      await keep(tx, 'inside');
      resolve();
      await new Promise((turn) => setTimeout(turn, 50));
      throw new Error('no');
    });
    await opened;

    await Promise.all([expect(failing).rejects.toThrow('no'), keep(database, 'beside')]);

    expect(await database.select('select name from installation')).toEqual([{ name: 'beside' }]);
  });

  it('gives rows the same shapes in and outside of transactions', async () => {
    await using database = await openTestDatabase(engine);
    const sql = `select $1::timestamptz as time, '{"b":1,"a":[2]}'::json as json, $2::text[] as texts, 1 as number`;
    const params = ['2026-01-02T03:04:05.678Z', ['x', 'y']];

    const outside = await database.select(sql, params);
    const inside = await database.transaction((tx) => tx.select(sql, params));

    expect(outside).toEqual(inside);
    expect(outside[0]).toMatchObject({ json: { b: 1, a: [2] }, texts: ['x', 'y'], number: 1 });
    expect(new Date(String(outside[0]?.time)).toISOString()).toBe('2026-01-02T03:04:05.678Z');
  });

  it('lets those hear who listen, until they stop', async () => {
    await using database = await openTestDatabase(engine);
    let heard = 0;
    const stop = await database.listen('wake', () => (heard += 1));

    await database.notify('other');
    await database.notify('wake');
    await expect.poll(() => heard).toBe(1);
    await stop();
    await database.notify('wake');
    await database.now();

    expect(heard).toBe(1);
  });
});

describe('a server shared by several instances', () => {
  it('is migrated once by two that start at the same time', async () => {
    await using server = await createServerDatabase({ migrated: false });

    const instances = await Promise.all(Array.from({ length: 3 }, () => open(server.databaseUrl)));

    const applied = await instances[0]?.select('select count(*)::int as count from migrations');
    expect(applied).toEqual([{ count: migrations.length }]);
    await Promise.all(instances.map((instance) => instance.close()));
  });

  it('carries notifications between them, also after the connections were cut', async () => {
    await using server = await createServerDatabase();
    const [one, two] = await Promise.all([open(server.databaseUrl), open(server.databaseUrl)]);
    let heard = 0;
    const stop = await one.listen('wake', () => (heard += 1));
    await two.notify('wake');
    await expect.poll(() => heard).toBe(1);

    const name = new URL(server.databaseUrl).pathname.slice(1);
    await runOn(
      server.adminUrl,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );

    await expect.poll(() => heard).toBe(2);
    await two.notify('wake');
    await expect.poll(() => heard).toBe(3);
    await stop();
    await Promise.all([one.close(), two.close()]);
  });

  it('repeats a transaction that another one brought to a deadlock', async () => {
    await using server = await createServerDatabase();
    const database = await open(server.databaseUrl);
    await Promise.all([keep(database, 'a'), keep(database, 'b')]);
    let tries = 0;
    let holding = 0;
    const both = Promise.withResolvers<void>();
    const crossing = (first: string, second: string) =>
      database.transaction(async (tx) => {
        tries += 1;
        await tx.execute('update installation set value = value where name = $1', [first]);
        holding += 1;
        if (holding === 2) both.resolve();
        await both.promise;
        await tx.execute('update installation set value = value where name = $1', [second]);
      });

    await Promise.all([crossing('a', 'b'), crossing('b', 'a')]);

    expect(tries).toBe(3);
    await database.close();
  });

  it('is unavailable, not broken, while nobody answers, and works again after', async () => {
    await using server = await createServerDatabase();
    using proxy = await openDatabaseProxy(server.databaseUrl);
    const database = await open(proxy.databaseUrl);

    proxy.cut();
    const failures = await Promise.allSettled([
      database.select('select 1'),
      database.read((em) => em.execute('select 1')),
      database.transaction((tx) => keep(tx, 'never')),
    ]);

    expect(failures.map((failure) => failure.status === 'rejected' && failure.reason.name)).toEqual(
      Array(3).fill('DatabaseUnavailable'),
    );
    expect(await database.isReady()).toBe(false);
    await proxy.mend();
    await keep(database, 'after');
    expect(await database.select('select name from installation')).toEqual([{ name: 'after' }]);
    await database.close();
  });

  it('lets a listener stop while nobody answers, and hear nothing after', async () => {
    await using server = await createServerDatabase();
    using proxy = await openDatabaseProxy(server.databaseUrl);
    const database = await open(proxy.databaseUrl);
    let heard = 0;
    const stop = await database.listen('wake', () => (heard += 1));
    proxy.cut();
    await expect(database.select('select 1')).rejects.toThrow('unavailable');

    await stop();

    await proxy.mend();
    await database.notify('wake');
    await database.now();
    await database.close();
    expect(heard).toBe(0);
  });
});

describe('opening a database', () => {
  it.each([
    ['postgres://nobody@127.0.0.1:1/none', /^The database at 127\.0\.0\.1:1\/none can't be reached: .*\.$/],
    ['not a url', /^DATABASE_URL is not a URL/],
  ])('says in one line what is wrong with %s', async (databaseUrl, message) => {
    const failure = await open(databaseUrl).catch((error: unknown) => error);

    expect(failure).toMatchObject({ name: 'StartError', message: expect.stringMatching(message) });
    expect(failure).not.toMatchObject({ message: expect.stringContaining('\n') });
  });
});

function open(databaseUrl: string): Promise<Database> {
  return openDatabase({ databaseUrl, log: pino({ level: 'silent' }) });
}

async function keep(db: Pick<Database, 'execute'>, name: string): Promise<void> {
  await db.execute('insert into installation (name, value) values ($1, $1)', [name]);
}
