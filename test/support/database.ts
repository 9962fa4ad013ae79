import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, openAsBlob } from 'node:fs';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { entities } from '../../src/store/database/engine.ts';
import { isMatrixFull } from './covering.ts';
import { inDatabase, runOn } from './postgres.ts';
import { preparedPglite, preparedPostgres } from './prepared.ts';

/** Both engines: tests that touch the database run on each, by `describe.each(engines)`. */
export const engines = ['pglite', 'postgres'] as const;

/** For tests in whose assertions the database has no part: one engine, or each if the matrix is to be full. */
export function oneEngine(engine: EngineName): readonly EngineName[] {
  return isMatrixFull ? engines : [engine];
}

/** The items that are tried on an engine: every other one, or each if the matrix is to be full. */
export function shareOf<T>(items: readonly T[], engine: EngineName): T[] {
  return items.filter((_, index) => isMatrixFull || engines[index % engines.length] === engine);
}

export type EngineName = (typeof engines)[number];

/**
 * An empty, migrated database until the scope of `await using` is left. The next test of this process
 * gets the same one, emptied, since opening one costs half a second; but not if this test added a table,
 * a function or a trigger.
 */
export async function openTestDatabase(engine: EngineName): Promise<TestDatabase> {
  const database = idle[engine].pop() ?? (engine === 'pglite' ? await openEmbedded() : await openOnServer());
  const before = await definitionsIn(database);
  return {
    ...database,
    async [Symbol.asyncDispose]() {
      if ((await definitionsIn(database)) !== before) return database.close();
      await emptyTables(database);
      idle[engine].push(database);
    },
  };
}

/** Removes every row, for test files whose tests share one database. */
export async function emptyTables(database: Database): Promise<void> {
  await database.execute(emptyingUsedTables);
}

/** Makes an empty database on the test server, migrated if not said otherwise, for tests that connect by themselves. */
export async function createServerDatabase({ migrated = true } = {}): Promise<ServerDatabase> {
  const { url, template, prefix } = await preparedPostgres();
  const name = `${prefix}${randomBytes(8).toString('hex')}`;
  await runOn(url, `create database ${name}${migrated ? ` template ${template}` : ''}`);
  return {
    databaseUrl: inDatabase(url, name),
    adminUrl: url,
    async [Symbol.asyncDispose]() {
      await runOn(url, `drop database if exists ${name} with (force)`);
    },
  };
}

/** Puts an empty, migrated embedded database into a new data folder, for tests that open it by themselves. */
export async function givenEmbeddedDatabase(dataDir: string): Promise<void> {
  const { folder } = await preparedPglite();
  mkdirSync(dataDir, { recursive: true });
  // Takes a third of the time of Node's own.
  execFileSync('cp', ['-r', `${folder}/.`, dataDir]);
}

async function openEmbedded(): Promise<OpenDatabase> {
  const { dump } = await preparedPglite();
  return openDatabase({ dump: await openAsBlob(dump), log: console });
}

async function openOnServer(): Promise<OpenDatabase> {
  const { databaseUrl } = await createServerDatabase();
  return { ...(await openDatabase({ databaseUrl, log: console })), databaseUrl };
}

/** Open and used by nobody. They end with the process, and those on the server with the run. */
const idle: Record<EngineName, OpenDatabase[]> = { pglite: [], postgres: [] };

/** How many tables, functions and triggers the database has, as `tables,functions,triggers`. */
async function definitionsIn(database: Database): Promise<string> {
  const [row] = await database.select(
    `select concat_ws(',',
       (select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'),
       (select count(*) from pg_proc where pronamespace = 'public'::regnamespace),
       (select count(*) from pg_trigger where not tgisinternal)) as definitions`,
  );
  return String(row?.definitions);
}

const tableNames = entities.map(({ meta }) => meta.tableName);

/** Truncating a table makes new files for it and its indexes, so that empty ones are better left alone. */
const emptyingUsedTables = `do $$
  declare
    name text;
    used text[] := '{}';
    has_rows boolean;
  begin
    foreach name in array '{${tableNames.join()}}'::text[] loop
      execute format('select exists (select from %I)', name) into has_rows;
      if has_rows then used := used || format('%I', name); end if;
    end loop;
    if cardinality(used) > 0 then execute 'truncate ' || array_to_string(used, ', '); end if;
  end $$`;

export type TestDatabase = OpenDatabase & AsyncDisposable;
type OpenDatabase = Database & { databaseUrl?: string };
export type ServerDatabase = AsyncDisposable & {
  databaseUrl: string;
  /** The server's maintenance database. */
  adminUrl: string;
};
