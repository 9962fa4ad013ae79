import type { MikroORM } from '@mikro-orm/core';
import { migrations } from '../migrations/index.ts';
import type { EntityManager, Row } from './queries.ts';

/** What both engines tell MikroORM. */
export const ormOptions = {
  allowGlobalContext: false,
  ensureDatabase: false,
  migrations: { migrationsList: migrations, snapshot: false, tableName: 'migrations', silent: true },
  // Rows go straight to the caller: an identity map over a read would keep each of them alive.
  disableIdentityMap: true,
};

/** What the tables lack of what the entities describe, as SQL. */
export async function schemaDifference(orm: Pick<MikroORM, 'schema'>): Promise<string> {
  return orm.schema.getUpdateSchemaSQL({ wrap: false });
}

/** Types whose values are read as text, as the ORM expects: date, timestamp, timestamptz. */
export const timeTypes = [1082, 1114, 1184];

/** What the two engines have in common beneath `Database`. Nothing here retries. */
export type Engine = {
  name: 'pglite' | 'postgres';
  /** Always the same one: fork it. */
  em: EntityManager;
  /** Brings the tables up to date, taking turns with other processes. */
  migrate(): Promise<void>;
  /** What the tables lack of what the entities describe, as SQL; empty if nothing. */
  schemaDifference(): Promise<string>;
  /** Runs one statement outside any transaction, with `$1` parameters; `prepared` is as in `StatementOptions`. */
  query(sql: string, params: unknown[], prepared?: boolean): Promise<Row[]>;
  /** Calls `handler` for notifications, and after a gap, until the returned function is called. */
  listen(channel: string, handler: () => void): Promise<() => Promise<void>>;
  /** The connections to a server, and how many queries wait for one; undefined on the embedded engine. */
  connections(): PoolUse | undefined;
  /** Absent on a server, and in memory. */
  files?: DatabaseFiles;
  close(): Promise<void>;
};

/** The files of an embedded database, to be copied. */
export type DatabaseFiles = {
  folder: string;
  /**
   * Writes what is in memory to the files. `firstSegment` names the oldest file of the log that is needed from now on.
   */
  checkpoint(): Promise<{ waitedMs: number; firstSegment: string }>;
  /** Runs `work` while all statements wait, so that no file changes. `lastSegment` names the log's newest file. */
  hold<T>(work: (lastSegment: string) => Promise<T>): Promise<T>;
};

export type PoolUse = { inUse: number; idle: number; most: number; waiting: number };
