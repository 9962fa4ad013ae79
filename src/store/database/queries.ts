import type { SqlEntityManager } from '@mikro-orm/postgresql';

/**
 * Where queries run: the database itself, or one transaction of it. Every named query of this folder
 * takes one, so that it can be part of a transaction.
 *
 * Outside a transaction, passing faults are retried (see `retrying`), and those that don't pass throw
 * `DatabaseUnavailable`.
 */
export type Queries = {
  /** Runs work that changes nothing, on an entity manager of its own. */
  read<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
  /** Runs work that changes something, on an entity manager of its own. It is not flushed. */
  write<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
  /**
   * Runs one statement with `$1` parameters. Times come as text (see `timeOf`), `json` parsed, bigints as
   * text or number.
   */
  query(sql: string, params?: unknown[], options?: QueryOptions): Promise<Row[]>;
};

type QueryOptions = {
  /** Carrying it out twice is the same as once. */
  repeatable?: boolean;
  /** A statement of the hot path, always of the same few texts: connections keep it planned. */
  prepared?: boolean;
};

/** The queries of one transaction; asked for by named queries that must be carried out whole. */
export type Transaction = Queries & { readonly inTransaction: true };

/** A time out of a row of `query`, which gives times as text. */
export function timeOf(value: unknown): Date {
  if (value instanceof Date) return value;
  const time = new Date(String(value));
  if (Number.isNaN(time.getTime())) throw new TypeError(`Not a time from the database: ${String(value)}`);
  return time;
}

/** As `timeOf`, for a column that may be null. */
export function timeOrNull(value: unknown): Date | null {
  return value === null || value === undefined ? null : timeOf(value);
}

/** A text out of a row of `query`; null if the column is. */
export function textOrNull(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return null;
  throw new TypeError('Not a text from the database');
}

/** An entity manager of either engine. */
export type EntityManager = SqlEntityManager;

/** A row of `query`, by the names of its columns. */
export type Row = { [column: string]: unknown };
