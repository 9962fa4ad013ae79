import { defineConfig, MikroORM } from '@mikro-orm/postgresql';
import { StartError } from '../../domain/errors/start-error.ts';
import type { Log } from '../../telemetry/log.ts';
import { type Connections, createConnections } from './connections.ts';
import { type Engine, ormOptions, schemaDifference } from './engine.ts';
import { entities } from './entities.ts';
import { listenOn } from './listener.ts';
import { migrateServer } from './migrate-server.ts';
import { ANSWER_TIMEOUT_MS, CONNECT_TIMEOUT_MS } from './retry.ts';

/**
 * Connects to a PostgreSQL server, of version 14 or newer.
 *
 * @throws StartError if the URL is not one or nobody answers there.
 */
export async function openPostgres(options: ServerOptions): Promise<Engine> {
  const { databaseUrl, poolSize, log, limits = {}, migrations } = options;
  const dbName = databaseName(databaseUrl);
  const { statementMs = STATEMENT_TIMEOUT_MS, answerMs = ANSWER_TIMEOUT_MS } = limits;
  const config = {
    connectionString: databaseUrl,
    application_name: 'headless-form-service',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  };
  const connections = createConnections({
    ...config,
    max: poolSize,
    statement_timeout: statementMs,
    query_timeout: answerMs,
  });
  const orm = await MikroORM.init(
    defineConfig({ ...ormOptions, entities, dbName, driverOptions: connections.dialect }),
  );
  try {
    // Else the ORM connects when it is first used, which may be in a transaction that holds the last connection.
    await orm.connect();
    await reach(connections, databaseUrl);
  } catch (error) {
    await connections.close();
    throw error;
  }
  return {
    name: 'postgres',
    em: orm.em,
    migrate: () => migrateServer(config, { dbName, log, migrations }),
    schemaDifference: () => schemaDifference(orm),
    query: (sql, params, prepared) => connections.query(sql, params, prepared),
    listen: (channel, handler) => listenOn(connections.pool, channel, handler, log),
    connections: () => {
      const { totalCount, idleCount, waitingCount } = connections.pool;
      return { inUse: totalCount - idleCount, idle: idleCount, most: poolSize, waiting: waitingCount };
    },
    close: async () => {
      await orm.close();
      await connections.close();
    },
  };
}

async function reach(connections: Connections, databaseUrl: string): Promise<void> {
  try {
    await connections.query('select 1', []);
  } catch (error) {
    const reason = error instanceof Error && error.message !== '' ? error.message : 'nobody answers';
    throw new StartError(`The database at ${placeOf(databaseUrl)} can't be reached: ${reason}.`, {
      cause: error,
    });
  }
}

/** The server cancels what takes longer. All queries of this service take a fraction of it. */
const STATEMENT_TIMEOUT_MS = 10_000;

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

type ServerOptions = Omit<Parameters<typeof migrateServer>[1], 'dbName'> & {
  databaseUrl: string;
  /** The most connections. */
  poolSize: number;
  log: Log;
  /** How long a statement may take, and how long its answer, instead of the usual times: for tests. */
  limits?: { statementMs?: number; answerMs?: number };
};
