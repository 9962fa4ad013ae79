import type { SqlEntityManager } from '@mikro-orm/postgresql';
import DataLoader from 'dataloader';
import { currentUse, type ReadSlots } from './read-slots.ts';

/** Makes a page of `limit` items out of the rows of a query that asked for one more. */
export function pageOf<T extends { id: string }>(rows: T[], limit: number): Page<T> {
  const items = rows.slice(0, limit);
  return { items, nextCursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

/** Finds a page, newest first: `find` gets the condition of the page's cursor, and the order and number of its rows. */
export async function findPage<T extends { id: string }>(
  db: Queries,
  { limit, cursor }: PageRequest,
  find: (em: EntityManager, before: { id?: { $lt: string } }, range: PageRange) => Promise<T[]>,
): Promise<Page<T>> {
  const before = cursor === undefined ? {} : { id: { $lt: cursor } };
  const rows = await db.read((em) => find(em, before, { orderBy: { id: 'desc' }, limit: limit + 1 }));
  return pageOf(rows, limit);
}

/** The most bytes of a page, unless it has only one item: gRPC clients take messages of 4 MiB by default. */
export const MAX_PAGE_BYTES = 2 * 1024 * 1024;

/** Types whose values are read as text, as the ORM expects: date, timestamp, timestamptz. */
export const timeTypes = [1082, 1114, 1184];

/**
 * Deletes up to `limit` rows of a table, and returns their keys. Rows that another transaction holds are
 * left to it. Small groups keep locks short, so that purging stops nobody.
 */
export async function deleteSome(
  db: Queries,
  table: string,
  { where, params = [], orderBy, limit, key = 'id' }: Selection,
): Promise<Row[]> {
  return db.execute(
    `delete from ${table} where (${key}) in (
       select ${key} from ${table} where ${where} ${orderBy === undefined ? '' : `order by ${orderBy}`}
       limit $${params.length + 1} for update skip locked
     ) returning ${key}`,
    [...params, limit],
  );
}

/**
 * Makes a look-up by id that batches: the calls of one turn of the event loop become one query, since under
 * load most of what a small SELECT costs is its round trip. Nothing is cached. Those of one
 * reader alone share a query: it waits for that reader's turn, and counts as theirs.
 *
 * Calls of one turn for the same id get the same object, and the calls of a batch share a failure. So check
 * ids with `isId` before: a text that no database can hold would fail the whole batch.
 */
export function createLoader<Found extends { id: string }>(
  findAll: (db: Queries, ids: readonly string[]) => Promise<Found[]>,
): (db: Queries, id: string) => Promise<Found | null> {
  const loaders = new WeakMap<Queries, Map<string, DataLoader<string, Found | null>>>();

  const loaderOf = (db: Queries) => {
    const { reader, readsMuch, during } = currentUse() ?? {};
    const use = `${reader} ${readsMuch} ${during}`;
    const byUse = loaders.get(db) ?? new Map();
    loaders.set(db, byUse);
    const known = byUse.get(use);
    if (known !== undefined) return known;
    const loader = new DataLoader<string, Found | null>(
      async (ids) => {
        byUse.delete(use);
        const found = new Map((await findAll(db, ids)).map((each) => [each.id, each]));
        return ids.map((id) => found.get(id) ?? null);
      },
      { cache: false, maxBatchSize: MAX_BATCH, batchScheduleFn: (load) => setImmediate(load) },
    );
    byUse.set(use, loader);
    return loader;
  };
  return (db, id) => loaderOf(db).load(id);
}

/** Rows hold up to 256 KiB of answers each. */
const MAX_BATCH = 64;

/**
 * Where queries run: the database itself, or one transaction of it. Every named query of the store takes
 * one, so that it can be part of a transaction.
 *
 * Outside a transaction, work that fails with a transient fault runs again: a read always, a change only if
 * it certainly had no effect. If the fault persists, `DatabaseUnavailable` is thrown. Within a transaction
 * nothing runs again by itself: the transaction does, as a whole.
 */
export type Queries = {
  /** Runs work that only reads, on an entity manager of its own. */
  read<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
  /** Runs work that changes something, on an entity manager of its own. It is not flushed. */
  write<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
  /**
   * Runs one statement that only reads, with `$1` parameters. Times come as text (see `timeOf`), `json`
   * parsed, bigints as text or number.
   */
  select(sql: string, params?: unknown[], options?: StatementOptions): Promise<Row[]>;
  /** Runs one statement that changes something, as `select` does, and gives the rows it returns. */
  execute(sql: string, params?: unknown[], options?: ChangeOptions): Promise<Row[]>;
};

type StatementOptions = {
  /** For frequent statements, of a few fixed texts: each connection prepares and plans them once. */
  prepared?: boolean;
};

type ChangeOptions = StatementOptions & {
  /** Carrying it out twice is the same as once, so it runs again like a read. */
  repeatable?: boolean;
};

/** The queries of one transaction. Named queries of several statements ask for one. */
export type Transaction = Queries & {
  readonly inTransaction: true;
  /** Calls `work` once all of the transaction is known to be stored. */
  afterCommit(work: () => void): void;
};

export type Transactions = {
  /**
   * Runs `work` in a transaction. After a deadlock or another transient fault it runs again, so it must have
   * no effect outside. On the embedded engine a query in `work` that does not use `tx` would wait forever.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Whose turn it is. */
  readonly slots: ReadSlots;
};

/** An entity manager of either engine. */
export type EntityManager = SqlEntityManager;

/** A row of a statement, by the names of its columns. */
export type Row = { [column: string]: unknown };

/** One page of a list, and where the next one begins: the id of the last item, or null at the end. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/** Which page: `cursor` is the `nextCursor` of the page before. */
export type PageRequest = { limit: number; cursor?: string | undefined };

type PageRange = { orderBy: { id: 'desc' }; limit: number };

/** `where` is a condition with `params`; `key` the columns of the primary key. */
type Selection = {
  where: string;
  params?: unknown[];
  orderBy?: string;
  limit: number;
  key?: string;
};
