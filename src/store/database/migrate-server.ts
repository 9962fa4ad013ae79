import { setTimeout as sleep } from 'node:timers/promises';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient, PoolConfig } from 'pg';
import type { Log } from '../../telemetry/log.ts';
import { createConnections } from './connections.ts';
import { ormOptions } from './engine.ts';
import { reportProgress, runMigrations } from './migrate.ts';

/**
 * Runs the pending migrations of a server, on connections of their own that have no time limit: an index
 * on a large table can take an hour. Processes that start meanwhile wait until it is done.
 */
export async function migrateServer(config: PoolConfig, { dbName, log, migrations }: Options): Promise<void> {
  const connections = createConnections({ ...config, max: 2 });
  const orm = await MikroORM.init(
    defineConfig({
      ...ormOptions,
      migrations: { ...ormOptions.migrations, ...(migrations && { migrationsList: migrations }) },
      dbName,
      entities: [],
      discovery: { warnWhenNoEntities: false },
      extensions: [Migrator],
      driverOptions: connections.dialect,
    }),
  );
  try {
    const lock = await connections.pool.connect();
    try {
      await lock.query(WITHOUT_LIMITS);
      await acquireLock(lock, log);
      // The pool's only other connection, which the migrations then run on.
      await connections.query(WITHOUT_LIMITS, []);
      await runMigrations(orm.migrator, log);
    } finally {
      lock.release(true);
    }
  } finally {
    await connections.close();
  }
}

/** The limits that the server, the database or the role sets. */
const WITHOUT_LIMITS = `select set_config(name, '0', false) from pg_settings where name in
  ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout',
   'transaction_timeout')`;

/** Waits until no other process migrates the database. The lock ends with its connection. */
async function acquireLock(client: PoolClient, log: Log): Promise<void> {
  const finish = reportProgress(log, {}, [
    'Waiting for another process that is migrating the database.',
    'The other process has migrated the database.',
  ]);
  try {
    // A statement that waited would itself keep the other process from building an index concurrently.
    for (;;) {
      const { rows } = await client.query('select pg_try_advisory_lock($1) as acquired', [MIGRATION_LOCK]);
      if (rows[0]?.acquired === true) return;
      await sleep(LOCK_POLL_MS);
    }
  } finally {
    finish();
  }
}

/** Any fixed number, the same in every process. */
const MIGRATION_LOCK = 4_715_923;
const LOCK_POLL_MS = 100;

type Options = {
  dbName: string;
  log: Log;
  /** Instead of those of this service, for tests. */
  migrations?: typeof ormOptions.migrations.migrationsList | undefined;
};
