import type { EntityManager, Row } from './queries.ts';

/** What the two engines have in common beneath `Database`. Nothing here retries. */
export type Engine = {
  name: 'pglite' | 'postgres';
  /** Always the same one: fork it. */
  em: EntityManager;
  /** Brings the tables up to date, taking turns with other processes. */
  migrate(): Promise<void>;
  /** What the tables lack of what the entities describe, as SQL; empty if nothing. */
  schemaDifference(): Promise<string>;
  /** Runs one statement outside any transaction, with `$1` parameters; `prepared` is as in `QueryOptions`. */
  query(sql: string, params: unknown[], prepared?: boolean): Promise<Row[]>;
  /** Hears notifications until the returned function is called; `handler` also runs after a gap. */
  listen(channel: string, handler: () => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
};
