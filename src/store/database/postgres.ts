import { setTimeout as sleep } from 'node:timers/promises';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/postgresql';
import type { PoolClient, PoolConfig } from 'pg';
import { StartError } from '../../domain/errors/system-errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { type Connections, createConnections, listenForNotifications } from './connections.ts';
import { type Engine, ormOptions, schemaDifference } from './engine.ts';
import { ANSWER_TIMEOUT_MS, CONNECT_TIMEOUT_MS, sqlState, transientFault } from './faults.ts';
import { reportProgress, runMigrations } from './migrate.ts';

/**
 * Connects to a PostgreSQL server, of version 14 or newer.
 *
 * @throws StartError if the URL is not one or nobody answers there for `waitMs`.
 */
export async function openPostgres(options: ServerOptions): Promise<Engine> {
  const { databaseUrl, poolerUrl, poolSize, waitMs = 0, log, limits = {}, migrations } = options;
  const dbName = databaseName(databaseUrl);
  const { statementMs = STATEMENT_TIMEOUT_MS, answerMs = ANSWER_TIMEOUT_MS } = limits;
  const config = {
    connectionString: databaseUrl,
    application_name: 'headless-form-service',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  };
  const limited = { ...config, max: poolSize, query_timeout: answerMs };
  const timed = { statement_timeout: statementMs };
  // A pooler takes no limit of statements at the start of a connection: that is the role's.
  const connections =
    poolerUrl === undefined
      ? createConnections({ ...limited, ...timed })
      : createConnections({ ...limited, connectionString: poolerUrl }, { isPooled: true });
  const direct = poolerUrl === undefined ? connections : createConnections({ ...config, ...timed, max: 1 });
  const closeAll = async () => {
    await connections.close();
    if (direct !== connections) await direct.close();
  };
  const orm = await MikroORM.init(
    defineConfig({ ...ormOptions, dbName, driverOptions: connections.dialect }),
  );
  try {
    // Else the ORM connects when it is first used, which may be in a transaction that holds the last connection.
    await orm.connect();
    const schema = await reach(direct, databaseUrl, { waitMs, log });
    if (poolerUrl !== undefined && (await reach(connections, poolerUrl, { waitMs, log })) !== schema)
      throw new StartError(
        `DATABASE_POOLER_URL leads to another schema than ${schema}: alter role … set search_path = ${schema}.`,
      );
  } catch (error) {
    await closeAll();
    throw error;
  }
  return {
    engine: 'postgres',
    em: orm.em,
    migrate: () => migrateServer(config, { dbName, log, migrations }),
    schemaDifference: () => schemaDifference(orm),
    query: (sql, params, prepared) => connections.query(sql, params, prepared),
    listen: (channel, handler) => listenForNotifications(direct.pool, channel, handler, log),
    connections: () => {
      const { totalCount, idleCount, waitingCount } = connections.pool;
      const { countUsedBy } = connections;
      return {
        inUse: totalCount - idleCount,
        idle: idleCount,
        most: poolSize,
        waiting: waitingCount,
        held: {
          strangers: countUsedBy('strangers'),
          owners: countUsedBy('owners'),
          projects: countUsedBy('projects'),
        },
      };
    },
    close: async () => {
      await orm.close();
      await closeAll();
    },
  };
}

/** Waits until the server answers, with a line in the log every ten seconds. Returns the schema that it uses. */
async function reach(
  connections: Connections,
  databaseUrl: string,
  { waitMs, log }: Pick<ServerOptions, 'log'> & { waitMs: number },
): Promise<string> {
  const giveUpAt = performance.now() + waitMs;
  for (let nextLineAt = performance.now(); ; ) {
    try {
      const [row] = await connections.query('select current_schema() as schema', []);
      if (typeof row?.schema === 'string') return row.schema;
      throw new StartError(
        `The database at ${placeOf(databaseUrl)} lacks the schema: create it, or set DATABASE_SCHEMA.`,
      );
    } catch (error) {
      if (error instanceof StartError) throw error;
      const reason = error instanceof Error && error.message !== '' ? error.message : 'nobody answers';
      const problem = `The database at ${placeOf(databaseUrl)} can't be reached: ${reason}.`;
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0 || !mayComeUp(error)) throw new StartError(problem, { cause: error });
      if (performance.now() >= nextLineAt) {
        log.warn(`${problem} The start waits for it, for another ${Math.ceil(leftMs / 1000)} s.`);
        nextLineAt += LINE_EVERY_MS;
      }
      await sleep(Math.min(TRY_EVERY_MS, leftMs));
    }
  }
}

/** Whether waiting can help: not if the server answers that it does not know the user or the database. */
function mayComeUp(error: unknown): boolean {
  return transientFault(error) !== undefined && !/^(28|3D)/.test(sqlState(error) ?? '');
}

const TRY_EVERY_MS = 500;
const LINE_EVERY_MS = 10_000;

/** The server cancels what takes longer. All queries of this service take a fraction of it. */
const STATEMENT_TIMEOUT_MS = 10_000;

/**
 * Runs the pending migrations of a server, on connections of their own that have no time limit: an index
 * on a large table can take an hour. Processes that start meanwhile wait until it is done.
 */
async function migrateServer(
  config: PoolConfig,
  { dbName, log, migrations }: MigrationOptions,
): Promise<void> {
  const connections = createConnections({ ...config, max: 2 });
  const [row] = await connections.query('select current_schema() as schema', []);
  const orm = await MikroORM.init(
    defineConfig({
      ...ormOptions,
      // It looks for the table of migrations in this one alone.
      schema: String(row?.schema),
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

function databaseName(databaseUrl: string): string {
  try {
    return decodeURIComponent(new URL(databaseUrl).pathname.slice(1)) || 'postgres';
  } catch (error) {
    throw new StartError('DATABASE_URL is not a URL such as postgres://user:password@host:5432/name.', {
      cause: error,
    });
  }
}

/** Host and database of the URL: never its password. */
function placeOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

type MigrationOptions = Pick<ServerOptions, 'log' | 'migrations'> & { dbName: string };

type ServerOptions = {
  databaseUrl: string;
  /** A pooler in transaction mode before it: for all but listening and migrations. */
  poolerUrl?: string | undefined;
  /** The most connections. */
  poolSize: number;
  /** How long to wait for a server that can't be reached yet. */
  waitMs?: number;
  log: Log;
  /** Instead of those of this service, for tests. */
  migrations?: typeof ormOptions.migrations.migrationsList | undefined;
  /** How long a statement may take, and how long its answer, instead of the usual times: for tests. */
  limits?: { statementMs?: number; answerMs?: number };
};
