import { CompiledQuery } from 'kysely';
import { timeOf } from './columns.ts';
import type { Engine } from './engine.ts';
import { inTimedRead, isStorageFault, transientFault, withRetries } from './faults.ts';
import { migrationState, refuseNewerTables, refusePending } from './migrate.ts';
import type { EmbeddedOptions } from './pglite.ts';
import type { EntityManager, Queries, Row, Transaction, Transactions } from './queries.ts';
import { currentUse, isTimed, ReadSlots } from './read-slots.ts';

/**
 * Opens the database, PostgreSQL at `databaseUrl` or else the embedded one in `dataDir`, and brings its
 * tables up to date unless told otherwise. Instances that start at the same time do so one after the other.
 *
 * @throws StartError with one line for the person who starts the service.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const engine = await openEngine(options);
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
async function openEngine({ databaseUrl, ...options }: DatabaseOptions): Promise<Engine> {
  if (databaseUrl === undefined) return (await import('./pglite.ts')).openPglite(options);
  const { openPostgres } = await import('./postgres.ts');
  return openPostgres({ poolSize: DEFAULT_POOL_SIZE, ...options, databaseUrl });
}

/** Enough to keep two cores of a server busy; group commit needs few. */
const DEFAULT_POOL_SIZE = 10;

/** The database on an open engine. */
export function databaseOn(engine: Engine): Database {
  const storage = new StorageWatch();
  // Three connections of a server are left for writes and `/ready`. The embedded database has as many reads waiting.
  const ofAll = Math.max(1, (engine.connections()?.most ?? EMBEDDED_SIZE) - 3);
  const slots = new ReadSlots({ ofAll, ofOne: Math.ceil(ofAll / 2) });
  const readRepeatedly = <T>(work: () => Promise<T>) =>
    slots.run(() => withRetries(isTimed(currentUse()) ? () => inTimedRead(work) : work, always));
  return {
    ...engine,
    slots,
    read: (work) => readRepeatedly(() => work(engine.em.fork())),
    write: (work) => storage.observe(() => withRetries(() => work(engine.em.fork()), never), always),
    select: (sql, params = [], { prepared = false } = {}) =>
      readRepeatedly(() => engine.query(sql, params, prepared)),
    execute: (sql, params = [], { prepared = false, repeatable = false } = {}) =>
      storage.observe(
        () => withRetries(() => engine.query(sql, params, prepared), repeatable ? always : never),
        () => isInsert(sql),
      ),
    transaction: (work) => inTransaction(engine, storage, work),
    listen: (channel, handler) => withRetries(() => engine.listen(channel, handler), always),
    notify: async (channel, text = '') => {
      // A second one would do no harm.
      await withRetries(() => engine.query('select pg_notify($1, $2)', [channel, text]), always);
    },
    now: async () => {
      const [row] = await withRetries(() => engine.query('select now() as now', []), always);
      return timeOf(row?.now);
    },
    isReady: async () => {
      if (storage.isFailing()) return false;
      try {
        await engine.query('select 1', []);
        return true;
      } catch (error) {
        if (transientFault(error) === undefined) throw error;
        return false;
      }
    },
  };
}

/**
 * How many connections a server with the bounds of the embedded database would have. It answers a read at the earliest in
 * the next turn of the event loop, and has no connections that reads could hold. With 10 the reads of 50 clients of a project waited for each other, not for it, while strangers made
 * turns long (`npm run test:abuse -- all-at-once`).
 */
const EMBEDDED_SIZE = 31;

const always = () => true;
const never = () => false;

/** A failure before the commit has changed nothing, even a lost connection: the transaction runs again. */
async function inTransaction<T>(
  { em }: Engine,
  storage: StorageWatch,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  let committing = false;
  let inserts = false;
  let afterCommit: (() => void)[] = [];
  const run = () => {
    committing = false;
    afterCommit = [];
    // `em.transactional` never releases the connection of a transaction that can't begin or roll back.
    return em
      .getKysely()
      .transaction()
      .execute(async (transaction) => {
        const own = em.fork();
        own.setTransactionContext(transaction);
        const result = await work({
          ...queriesIn(own, () => (inserts = true)),
          inTransaction: true,
          afterCommit: (later) => afterCommit.push(later),
        });
        committing = true;
        return result;
      });
  };
  const result = await storage.observe(
    () => withRetries(run, () => !committing),
    () => inserts,
  );
  for (const later of afterCommit) later();
  return result;
}

/** `onInsert` is called before what may put rows into tables. */
function queriesIn(em: EntityManager, onInsert: () => void): Queries {
  const query = async (sql: string, params: unknown[] = []) => {
    const result = await em.getKysely().executeQuery<Row>(CompiledQuery.raw(sql, params));
    return result.rows;
  };
  return {
    read: (work) => work(em),
    write: (work) => {
      onInsert();
      return work(em);
    },
    select: query,
    execute: (sql, params) => {
      if (isInsert(sql)) onInsert();
      return query(sql, params);
    },
  };
}

/**
 * Remembers that the database could not store something, since its disk was full or it was read-only: it may still
 * answer every question. It counts as failing until something was stored, for ten seconds at most.
 */
class StorageWatch {
  #failedAt = Number.NEGATIVE_INFINITY;

  isFailing(): boolean {
    return performance.now() - this.#failedAt < FAILING_MS;
  }

  /** Runs work that may store something; `hasStored` says of its result whether it did. */
  async observe<T>(work: () => Promise<T>, hasStored: (result: T) => boolean): Promise<T> {
    try {
      const result = await work();
      if (this.isFailing() && hasStored(result)) this.#failedAt = Number.NEGATIVE_INFINITY;
      return result;
    } catch (error) {
      if (isStorageFault(error)) this.#failedAt = performance.now();
      throw error;
    }
  }
}

/** Whether a statement puts rows into tables. On a full disk, those that claim and remove rows still succeed. */
function isInsert(sql: string): boolean {
  return /\binsert\s+into\b/i.test(sql);
}

const FAILING_MS = 10_000;

/** An open database: its engine, whose statements run again after a transient fault. */
export type Database = Omit<Engine, 'em' | 'query'> &
  Queries &
  Transactions & {
    /**
     * Calls the handlers of all that listen, with a text of less than 8,000 bytes. Outside transactions only: inside, it
     * would serialize commits.
     */
    notify(channel: string, text?: string): Promise<void>;
    /** The database's clock. */
    now(): Promise<Date>;
    /** Whether the database answers, and has not failed to store something just now. Writes nothing. */
    isReady(): Promise<boolean>;
  };

export type DatabaseOptions = EmbeddedOptions & {
  databaseUrl?: string;
  /** A pooler in transaction mode before it. */
  poolerUrl?: string | undefined;
  /** What to do about the tables; absent: to run the migrations that this version has and the tables lack. */
  migrate?: Migrate;
  /** The most connections to a server. */
  poolSize?: number;
  /** How long to wait for a server that can't be reached yet; absent: not at all. */
  waitMs?: number;
};

/**
 * `run` brings the tables up to date, `check` refuses those that are not, and both refuse those of a newer version;
 * `never` takes them as they are.
 */
type Migrate = 'run' | 'check' | 'never';

export type { Queries, Transaction } from './queries.ts';
