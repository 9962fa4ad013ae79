import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/postgresql';
import type { Log } from '../../telemetry/log.ts';
import type { Engine } from './engine.ts';
import { entities } from './entities.ts';
import { passingFault, StartError } from './faults.ts';
import { listenOn } from './listener.ts';
import { ormOptions, schemaDifference } from './orm-options.ts';
import type { Row } from './queries.ts';

/**
 * Connects to a PostgreSQL server, of version 14 or newer.
 *
 * @throws StartError if the URL is not one or nobody answers there.
 */
export async function openPostgres(options: {
  databaseUrl: string;
  poolSize: number;
  log: Log;
}): Promise<Engine> {
  const { databaseUrl, poolSize, log } = options;
  const dbName = databaseName(databaseUrl);
  const orm = await MikroORM.init(
    defineConfig({
      ...ormOptions,
      entities,
      extensions: [Migrator],
      dbName,
      pool: { min: 0, max: poolSize },
      driverOptions: {
        connectionString: databaseUrl,
        application_name: 'headless-form-service',
        keepAlive: true,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        statement_timeout: STATEMENT_TIMEOUT_MS,
        query_timeout: ANSWER_TIMEOUT_MS,
      },
    }),
  );

  const pool = await reach(orm, databaseUrl);
  return {
    name: 'postgres',
    em: orm.em,
    migrate: () =>
      // The lock is held on a connection of its own while the migrations run on another.
      orm.em.fork().transactional(async (em) => {
        await em.execute('set local statement_timeout = 0');
        await em.execute('select pg_advisory_xact_lock(?)', [MIGRATION_LOCK]);
        await orm.migrator.up();
      }),
    schemaDifference: () => schemaDifference(orm),
    query: (sql, params, prepared) => queryOn(pool, sql, params, prepared),
    listen: (channel, handler) => listenOn(pool, channel, handler, log),
    close: () => orm.close(),
  };
}

async function reach(orm: MikroORM, databaseUrl: string) {
  try {
    const pool = await orm.em.getDriver().getConnection().getNativeClient();
    await pool.query('select 1');
    return pool;
  } catch (error) {
    await orm.close(true);
    const reason = error instanceof Error && error.message !== '' ? error.message : 'nobody answers';
    throw new StartError(`The database at ${placeOf(databaseUrl)} can't be reached: ${reason}.`, {
      cause: error,
    });
  }
}

/**
 * Runs one statement on a connection of the pool, which is given up after a passing fault: it may lead to
 * a server that is going away, or to one that has become a standby.
 *
 * A commit whose wait for the synchronous standby is cancelled resolves as done, with no more than a
 * warning: what is stored may yet be lost, so it counts as unknown.
 */
async function queryOn(pool: Pool, sql: string, params: unknown[], prepared = false): Promise<Row[]> {
  const client = await pool.connect();
  let warned = false;
  const onNotice = (notice: { code?: string | undefined }) => {
    warned ||= notice.code === WARNING;
  };
  client.on('notice', onNotice);
  let broken = false;
  try {
    const { rows } = await client.query<Row>({
      text: sql,
      values: params,
      ...(prepared && { name: nameOf(sql) }),
    });
    if (warned) throw new CommitInDoubt();
    return rows;
  } catch (error) {
    broken = passingFault(error) !== undefined;
    throw error;
  } finally {
    client.off('notice', onNotice);
    client.release(broken);
  }
}

/** The name of a prepared statement: each text has its own. */
function nameOf(sql: string): string {
  const known = names.get(sql);
  if (known !== undefined) return known;
  const name = `statement_${names.size}`;
  names.set(sql, name);
  return name;
}

const names = new Map<string, string>();

class CommitInDoubt extends Error {
  /** SQLSTATE: transaction resolution unknown. */
  readonly code = '08007';
  constructor() {
    super('The commit was not confirmed by the synchronous standby');
  }
}

/** SQLSTATE. */
const WARNING = '01000';

/** A server that can't be spoken to within this is treated as away. */
const CONNECT_TIMEOUT_MS = 5_000;
/** No query of this service takes longer than a fraction of it; the server gives up. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** When the server itself is silent: a little more than the statement may take. */
const ANSWER_TIMEOUT_MS = 12_000;

/** Any fixed number: what instances that migrate take turns by. */
const MIGRATION_LOCK = 4_715_923;

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

type Pool = Awaited<ReturnType<typeof reach>>;
