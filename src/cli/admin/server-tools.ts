import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { hasCode } from '../../domain/errors/system-errors.ts';
import { RefusedError } from '../terminal.ts';

/**
 * Dumps the database of a server of a major version into a file, by `pg_dump`. `onBytes` is called each second with
 * the size of the file.
 *
 * @throws RefusedError if there is no `pg_dump`, if it is older than the server, or if it fails.
 */
export async function dumpServer(
  server: Server,
  { version, file }: { version: number; file: string },
  onBytes: (bytes: number) => void,
): Promise<void> {
  await requireVersion('pg_dump', version, server);
  const timer = setInterval(() => {
    stat(file).then(
      ({ size }) => onBytes(size),
      () => undefined,
    );
  }, PROGRESS_MS);
  try {
    await run(
      'pg_dump',
      ['--format=custom', '--no-owner', ...server.only, `--file=${file}`, `--dbname=${server.url}`],
      server,
    );
  } finally {
    clearInterval(timer);
  }
}

/**
 * Restores a dump into the empty database at a URL, by `pg_restore`: all of it or nothing.
 *
 * @throws RefusedError if there is no `pg_restore`, or if it fails.
 */
export async function restoreDump(server: Server, file: string): Promise<void> {
  await run(
    'pg_restore',
    ['--no-owner', '--exit-on-error', '--single-transaction', ...server.only, `--dbname=${server.url}`, file],
    server,
  );
}

/**
 * Reads every row of a dump, by `pg_restore`, and counts them by table; `onRow` gets those of the `wanted` tables by
 * their columns, as the text format of COPY has them.
 *
 * @throws RefusedError if there is no `pg_restore`, or if it can't read the dump.
 */
export async function readDump(
  { file, env, wanted }: { file: string; env: NodeJS.ProcessEnv; wanted: readonly string[] },
  onRow: (table: string, row: ReadonlyMap<string, string>) => void,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const child = start('pg_restore', ['--data-only', '--file=-', file], env);
  const failure = failureOf('pg_restore', child);
  failure.catch(() => undefined);
  let table: string | undefined;
  let columns: string[] = [];
  for await (const line of linesOf(child.stdout ?? [])) {
    if (table === undefined) {
      const [, name, list = ''] = /^COPY \S+?\.(\w+) \((.*)\) FROM stdin;$/.exec(line) ?? [];
      if (name === undefined) continue;
      table = name;
      columns = list.split(', ').map((column) => column.replaceAll('"', ''));
      counts.set(table, 0);
    } else if (line === '\\.') {
      table = undefined;
    } else {
      counts.set(table, (counts.get(table) ?? 0) + 1);
      if (!wanted.includes(table)) continue;
      const cells = line.split('\t');
      onRow(table, new Map(columns.map((column, n) => [column, cells[n] ?? ''])));
    }
  }
  await failure;
  return counts;
}

/** The password goes by the environment: others see the arguments of a process. */
export function serverAt(databaseUrl: string, env: NodeJS.ProcessEnv): Server {
  const url = new URL(databaseUrl);
  const password = decodeURIComponent(url.password);
  url.password = '';
  const [, schema] = /search_path=(\w+)/.exec(url.searchParams.get('options') ?? '') ?? [];
  return {
    url: url.href,
    env: { ...env, ...(password !== '' && { PGPASSWORD: password }) },
    only: schema === undefined ? [] : [`--schema=${schema}`],
  };
}

async function requireVersion(program: string, version: number, { env }: Server): Promise<void> {
  const needed = `The server at DATABASE_URL is PostgreSQL ${version}: a backup of it needs ${program} ${version} or newer`;
  const how = `Install it (Debian: apt-get install postgresql-client-${version}), or run this command where it is. Nothing was backed up.`;
  const child = start(program, ['--version'], env);
  let output = '';
  const read = (async () => {
    for await (const line of linesOf(child.stdout ?? [])) output += line;
  })();
  const isThere = await once(child, 'close').then(
    () => true,
    (error: unknown) => {
      if (hasCode(error, 'ENOENT')) return false;
      throw error;
    },
  );
  if (!isThere) throw new RefusedError(`${needed}, and there is none here. ${how}`);
  await read;
  const found = Number(/\(PostgreSQL\) (\d+)/.exec(output)?.[1] ?? 0);
  if (found < version) throw new RefusedError(`${needed}, and the one here is ${found}. ${how}`);
}

async function run(program: string, args: string[], { env }: Server): Promise<void> {
  const child = start(program, args, env);
  child.stdout?.resume();
  await failureOf(program, child);
}

function start(program: string, args: string[], env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Throws, in the words of the program, if it fails. */
async function failureOf(program: string, child: ChildProcess): Promise<void> {
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-MAX_WORDS);
  });
  const [code, signal] = await once(child, 'close').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) {
      throw new RefusedError(`${program} is not installed (Debian: apt-get install postgresql-client).`);
    }
    throw error;
  });
  if (code !== 0)
    throw new RefusedError(`${program} failed (${code ?? signal}): ${words.trim()}`.split('\n'));
}

/** Lines that end with LF alone. `node:readline` would end them with separators, too, that rows may hold. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

const PROGRESS_MS = 1_000;

/** The end of what a program says tells why it failed. */
const MAX_WORDS = 2_000;

/** `url` is without the password, which is in `env`. */
export type Server = {
  /** Arguments that name the one schema that is meant, if there is one. */
  only: string[];
  url: string;
  env: NodeJS.ProcessEnv;
};
