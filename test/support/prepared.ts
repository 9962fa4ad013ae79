import { inject } from 'vitest';

/** The run's PostgreSQL server, started for the first test that asks. */
export async function preparedPostgres(): Promise<PreparedPostgres> {
  return (await ask('postgres')) as PreparedPostgres;
}

/** The run's migrated embedded database, made for the first test that asks. */
export async function preparedPglite(): Promise<PreparedPglite> {
  return (await ask('pglite')) as PreparedPglite;
}

/** The package for others as it is installed, which is done for the first test that asks. */
export async function preparedPackage(): Promise<PreparedPackage> {
  return (await ask('package')) as PreparedPackage;
}

async function ask(what: keyof Preparations): Promise<unknown> {
  // The server may be busy for longer than it keeps a connection open for.
  const reply = await fetch(new URL(what, inject('preparations')), { headers: { connection: 'close' } });
  if (!reply.ok) throw new Error(`No ${what} for tests: ${await reply.text()}`);
  return reply.json();
}

/** What the global setup makes when it is asked, by the path to ask at. */
export type Preparations = {
  postgres: () => Promise<PreparedPostgres>;
  pglite: () => Promise<PreparedPglite>;
  package: () => Promise<PreparedPackage>;
};

export type PreparedPostgres = {
  /** The maintenance database. */
  url: string;
  /** The name of a migrated database to copy, which nobody may be connected to. */
  template: string;
  /** What the names of all databases of this run begin with. */
  prefix: string;
};

export type PreparedPglite = {
  /** A tar file, for `openDatabase({ dump })`. */
  dump: string;
  /** A data folder, to copy. */
  folder: string;
};

export type PreparedPackage = {
  /** A folder with `node_modules` and `package.json`. */
  folder: string;
};

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the server that makes them. */
    preparations: string;
  }
}
