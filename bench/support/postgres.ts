import { Client } from 'pg';
import { openDatabase } from '../../src/store/database/database.ts';
import { runOn, startPostgres } from '../../test/support/postgres.ts';

/** Starts the PostgreSQL of the tests, with a migrated database to copy from. */
export async function startDatabases(): Promise<Databases> {
  const server = await startPostgres(SETTINGS);
  const urlOf = (name: string) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  const prefix = `forms_bench_${process.pid}`;
  const made: string[] = [];
  const seeded = new Map<string, Promise<Seeded>>();

  const create = async (template?: string) => {
    const name = `${prefix}_${made.length}`;
    made.push(name);
    const copy = template === undefined ? '' : `template ${template} strategy file_copy`;
    await runOn(server.url, `create database ${name} ${copy}`);
    return { name, url: urlOf(name) };
  };
  const migrated = await create();
  const database = await openDatabase({ databaseUrl: migrated.url, log: quiet });
  await database.close();

  return {
    create: async () => (await create(migrated.name)).url,
    async createFrom(key, fill) {
      const known = seeded.get(key);
      const making = known ?? fillTemplate(await create(migrated.name), fill);
      seeded.set(key, making);
      const { name, content } = await making;
      return { url: (await create(name)).url, content };
    },
    async [Symbol.asyncDispose]() {
      for (const name of made) await runOn(server.url, `drop database if exists ${name} with (force)`);
      await server.stop();
    },
  };
}

/** The rows of one query, on a connection of its own. */
export async function queryOn(url: string, sql: string, params: unknown[] = []): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql, params)).rows;
  } finally {
    await client.end();
  }
}

/** The one number of a query with one. */
export async function numberOn(url: string, sql: string, params: unknown[] = []): Promise<number> {
  const [row = {}] = await queryOn(url, sql, params);
  return Number(Object.values(row)[0]);
}

async function fillTemplate({ name, url }: { name: string; url: string }, fill: Fill): Promise<Seeded> {
  const content = await fill(url);
  await runOn(url, 'vacuum analyze');
  return { name, content };
}

const quiet = { debug: () => undefined, info: () => undefined, warn: console.warn, error: console.error };

export type Databases = AsyncDisposable & {
  /** Makes a database with the service's tables, and returns its URL. */
  create(): Promise<string>;
  /** Copies the database that `fill` filled: once for each `key`. `content` is what `fill` returned. */
  createFrom(key: string, fill: Fill): Promise<{ url: string; content: Content }>;
};

/**
 * A server that has been in use writes its log into files it has had before. A new one would fill each with
 * zeros first, and everybody would wait for that, 50 ms at a time.
 */
const SETTINGS = { wal_init_zero: 'off' };

type Row = Record<string, unknown>;
type Content = { formId: string; versionId: string };
type Fill = (url: string) => Promise<Content>;
type Seeded = { name: string; content: Content };
