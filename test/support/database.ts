import { randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { entities } from '../../src/store/database/entities.ts';
import { runOn } from './postgres.ts';

/** Both engines: tests that touch the database run on each, by `describe.each(engines)`. */
export const engines = ['pglite', 'postgres'] as const;

export type EngineName = (typeof engines)[number];

/** Opens an empty, migrated database of its own; leaving the scope of `await using` closes and removes it. */
export async function openTestDatabase(engine: EngineName): Promise<TestDatabase> {
  return engine === 'pglite' ? openEmbedded() : openOnServer();
}

/** Removes every row, for test files whose tests share one database: opening one costs a second. */
export async function emptyTables(database: Database): Promise<void> {
  const tables = entities.map(({ meta }) => meta.tableName);
  await database.query(`truncate ${tables.join(', ')}`);
}

/** Makes an empty database on the test server, migrated if not said otherwise, for tests that connect by themselves. */
export async function createServerDatabase({ migrated = true } = {}): Promise<ServerDatabase> {
  const { url, template } = inject('postgres');
  const name = `forms_${randomBytes(8).toString('hex')}`;
  await runOn(url, `create database ${name}${migrated ? ` template ${template}` : ''}`);
  return {
    databaseUrl: inDatabase(url, name),
    adminUrl: url,
    [Symbol.asyncDispose]: () => runOn(url, `drop database if exists ${name} with (force)`),
  };
}

/** The server's URL with another database in it. */
export function inDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

async function openEmbedded(): Promise<TestDatabase> {
  const dump = await openAsBlob(inject('pgliteDump'));
  const database = await openDatabase({ dump, log: console });
  return { ...database, [Symbol.asyncDispose]: () => database.close() };
}

async function openOnServer(): Promise<TestDatabase> {
  const server = await createServerDatabase();
  const database = await openDatabase({ databaseUrl: server.databaseUrl, log: console });
  return {
    ...database,
    databaseUrl: server.databaseUrl,
    [Symbol.asyncDispose]: async () => {
      await database.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

export type TestDatabase = Database & AsyncDisposable & { databaseUrl?: string };
export type ServerDatabase = AsyncDisposable & {
  databaseUrl: string;
  /** The server's maintenance database. */
  adminUrl: string;
};
