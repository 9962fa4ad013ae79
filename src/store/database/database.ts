import { CompiledQuery } from 'kysely';
import type { Log } from '../../telemetry/log.ts';
import { timeOf } from './columns.ts';
import type { DatabaseFiles, Engine, PoolUse } from './engine.ts';
import { transientFault } from './faults.ts';
import { migrationState, refuseNewerTables, refusePending } from './migration-state.ts';
import type { EntityManager, Queries, Row, Transaction } from './queries.ts';
import { withRetries } from './retry.ts';

/**
 * Opens the database, PostgreSQL at `databaseUrl` or else the embedded one in `dataDir`, and brings its
 * tables up to date unless told otherwise. Instances that start at the same time do so one after the other.
 *
 * @throws StartError with one line for the person who starts the service.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { databaseUrl } = options;
  const engine =
    databaseUrl === undefined ? await openEmbedded(options) : await openServer(databaseUrl, options);
  const database = databaseOn(engine);
  try {
    await prepareTables(engine, database, options.migrate ?? 'run');
  } catch (error) {
    await engine.close();
    throw error;
  }
  return database;
}

async function prepareTables(engine: Engine, database: Database, migrate: Migrate): Promise<void> {
  if (migrate === 'never') return;
  const state = await migrationState(database);
  refuseNewerTables(state);
  if (migrate === 'check') refusePending(state);
  else await engine.migrate();
}

/** The engine that is not used is not loaded. */
async function openEmbedded(options: DatabaseOptions): Promise<Engine> {
  const { openPglite } = await import('./pglite.ts');
  return openPglite(options);
}

async function openServer(
  databaseUrl: string,
  { poolSize = DEFAULT_POOL_SIZE, log }: DatabaseOptions,
): Promise<Engine> {
  const { openPostgres } = await import('./postgres.ts');
  return openPostgres({ databaseUrl, poolSize, log });
}

/** Enough to keep two cores of a server busy; group commit needs few. */
const DEFAULT_POOL_SIZE = 10;

function databaseOn(engine: Engine): Database {
  return {
    engine: engine.name,
    read: (work) => withRetries(() => work(engine.em.fork()), always),
    write: (work) => withRetries(() => work(engine.em.fork()), never),
    select: (sql, params = [], { prepared = false } = {}) =>
      withRetries(() => engine.query(sql, params, prepared), always),
    execute: (sql, params = [], { prepared = false, repeatable = false } = {}) =>
      withRetries(() => engine.query(sql, params, prepared), repeatable ? always : never),
    transaction: (work) => inTransaction(engine, work),
    listen: (channel, handler) => withRetries(() => engine.listen(channel, handler), always),
    notify: async (channel) => {
      // A second one would do no harm.
      await withRetries(() => engine.query('select pg_notify($1, $2)', [channel, '']), always);
    },
    now: async () => {
      const [row] = await withRetries(() => engine.query('select now() as now', []), always);
      return timeOf(row?.now);
    },
    isReady: async () => {
      try {
        await engine.query('select 1', []);
        return true;
      } catch (error) {
        if (transientFault(error) === undefined) throw error;
        return false;
      }
    },
    migrate: () => engine.migrate(),
    schemaDifference: () => engine.schemaDifference(),
    connections: () => engine.connections(),
    ...(engine.files && { files: engine.files }),
    close: () => engine.close(),
  };
}

const always = () => true;
const never = () => false;

/** A failure before the commit has changed nothing, even a lost connection: the transaction runs again. */
async function inTransaction<T>({ em }: Engine, work: (tx: Transaction) => Promise<T>): Promise<T> {
  let committing = false;
  const run = () => {
    committing = false;
    // `em.transactional` never releases the connection of a transaction that can't begin or roll back.
    return em
      .getKysely()
      .transaction()
      .execute(async (transaction) => {
        const own = em.fork();
        own.setTransactionContext(transaction);
        const result = await work(queriesIn(own));
        committing = true;
        return result;
      });
  };
  return withRetries(run, () => !committing);
}

function queriesIn(em: EntityManager): Transaction {
  const query = async (sql: string, params: unknown[] = []) => {
    const result = await em.getKysely().executeQuery<Row>(CompiledQuery.raw(sql, params));
    return result.rows;
  };
  return {
    inTransaction: true,
    read: (work) => work(em),
    write: (work) => work(em),
    select: query,
    execute: query,
  };
}

/** An open database. */
export type Database = Queries & {
  engine: 'pglite' | 'postgres';
  /**
   * Runs `work` in a transaction. After a deadlock or another transient fault it runs again, so it must have
   * no effect outside. On the embedded engine a query in `work` that does not use `tx` would wait for ever.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `handler` for each `notify` of the channel by any process, and once after each time the
   * listening connection was lost. Returns what stops it.
   */
  listen(channel: string, handler: () => void): Promise<() => Promise<void>>;
  /** Calls the handlers of all that listen. Outside transactions only: inside, it would serialize commits. */
  notify(channel: string): Promise<void>;
  /** The database's clock. */
  now(): Promise<Date>;
  /** Whether the database answers. */
  isReady(): Promise<boolean>;
  /** Brings the tables up to date, taking turns with other processes. */
  migrate(): Promise<void>;
  /** What the tables lack of what the entities describe, as SQL; empty unless a migration was forgotten. */
  schemaDifference(): Promise<string>;
  /** The connections to a server, and how many queries wait for one; undefined on the embedded engine. */
  connections(): PoolUse | undefined;
  /** Absent on a server, and in memory. */
  files?: DatabaseFiles;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  databaseUrl?: string;
  /** Holds the embedded database; without it and without `databaseUrl`, the database is in memory. */
  dataDir?: string;
  /** The dump of an embedded database to begin with. */
  dump?: Blob;
  /** Called if another process may use `dataDir` from now on; throws if absent, which ends the process. */
  onLockLost?: () => void;
  /** What to do about the tables; absent: to run the migrations that this version has and the tables lack. */
  migrate?: Migrate;
  /** The most connections to a server. */
  poolSize?: number;
  log: Log;
};

/**
 * `run` brings the tables up to date, `check` refuses those that are not, and both refuse those of a newer version;
 * `never` takes them as they are.
 */
type Migrate = 'run' | 'check' | 'never';

export type { Queries, Transaction } from './queries.ts';
