import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import { ReadTooLong } from '../../src/store/database/faults.ts';
import { createServerDatabase } from '../support/database.ts';
import { fillTables } from '../support/filled-tables.ts';
import { runOn } from '../support/postgres.ts';
import { freePort, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { PGBOUNCER, startProgram } from './programs.ts';
import { startInstances, startWriters } from './service.ts';

/** Fewer than the connections of one instance: statements that follow each other run on different ones. */
const SERVER_CONNECTIONS = 3;

it('serves every documented route through PgBouncer in transaction mode', async () => {
  await using opened = new AsyncDisposableStack();
  const { databaseUrl, poolerUrl } = await startPooled(opened);

  const { service } = await fillTables(opened, databaseUrl, { DATABASE_POOLER_URL: poolerUrl });

  expect(await clientsOf(databaseUrl)).toBe(SERVER_CONNECTIONS + 1);
  expect((await service.stop('SIGTERM')).code).toBe(0);
}, 120_000);

it('lets two instances accept and deliver through it, and hear of each other on a direct connection', async () => {
  await using opened = new AsyncDisposableStack();
  const { databaseUrl, poolerUrl } = await startPooled(opened);
  const instances = await startInstances(opened, databaseUrl, { DATABASE_POOLER_URL: poolerUrl });

  const writers = startWriters(instances, 16);
  await until(() => writers.acknowledged.length >= 500, 60_000);
  await writers.stop();

  const ids = new Set(writers.acknowledged.map(({ id }) => id));
  const [stored] = await runOn(databaseUrl, 'select count(*)::int as count from submissions');
  expect(stored?.count).toBe(ids.size);
  await until(() => [...ids].every((id) => instances.received().has(id)), 60_000);
  const listening = await runOn(
    databaseUrl,
    `select client_port from pg_stat_activity where query like 'listen %' and datname = current_database()`,
  );
  expect(listening).toHaveLength(2);
}, 180_000);

it('keeps the time limit of lists to these, although connections are shared', async () => {
  await using opened = new AsyncDisposableStack();
  const { databaseUrl, poolerUrl } = await startPooled(opened);
  const database = await openDatabase({ databaseUrl, poolerUrl, log: console });
  opened.defer(() => database.close());
  const asList = <T>(work: () => Promise<T>) =>
    database.slots.within({ reader: 'prj_a', readsMuch: true }, work);

  const slow = asList(() => database.select('select pg_sleep(20)'));
  const others = database.select('select pg_sleep(4)');

  await expect(slow).rejects.toThrow(ReadTooLong);
  await others;
  const limits = await Promise.all(
    Array.from({ length: 10 }, () =>
      database.select('select pg_sleep(0.1), current_setting($1) as limit', ['statement_timeout']),
    ),
  );
  expect(new Set(limits.flat().map(({ limit }) => limit))).toEqual(new Set(['0']));
  expect(await asList(() => database.select('select 1 as one'))).toEqual([{ one: 1 }]);
}, 60_000);

/** Starts PgBouncer before an empty database. */
async function startPooled(opened: AsyncDisposableStack) {
  const { databaseUrl } = opened.use(await createServerDatabase({ migrated: false }));
  const { path: folder } = opened.use(temporaryFolder());
  chmodSync(folder, 0o777);
  const { hostname, port, pathname, username } = new URL(databaseUrl);
  const ownPort = await freePort();
  writeFileSync(join(folder, 'users.txt'), `"${username}" ""\n`);
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${hostname} port=${port} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = trust
auth_file = ${folder}/users.txt
pool_mode = transaction
default_pool_size = ${SERVER_CONNECTIONS}
max_client_conn = 200
`,
  );
  const log = join(folder, 'log');
  startProgram(opened, log, PGBOUNCER, [join(folder, 'pgbouncer.ini')]);
  const poolerUrl = `postgres://${username}@127.0.0.1:${ownPort}${pathname}`;
  await until(() => runOn(poolerUrl, 'select 1').catch(() => undefined), 15_000);
  return { databaseUrl, poolerUrl };
}

async function clientsOf(databaseUrl: string): Promise<number> {
  const [row] = await runOn(
    databaseUrl,
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  );
  return Number(row?.count);
}
