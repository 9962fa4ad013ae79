import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program } from './programs.ts';

/**
 * Runs the service as a process of its own, as `npm start` does, with these variables and no others of the service:
 * from the run's bundle, or from the sources `fromSource` or of another working tree, if one is given. With `inTerminal`
 * its output is a terminal's, all of it in `output`. Waits for nothing: see `started` and `ended`.
 */
export function spawnService(
  env: Record<string, string>,
  {
    args = [],
    folder,
    fromSource = folder !== undefined,
    inTerminal = false,
    after = '',
    stderr = 'pipe',
  }: SpawnOptions = {},
): SpawnedService {
  const main = fromSource ? ['src/main.ts'] : program('main');
  const command = [process.execPath, '--max-semi-space-size=16', ...main, ...args];
  const [file = '', ...words] = inTerminal
    ? ['script', '-qec', `exec ${command.join(' ')}`, '/dev/null']
    : ['sh', '-c', `${after}\nexec "$@"`, 'sh', ...command];
  const child = spawn(file, words, {
    cwd: folder ?? root,
    // What it compiles goes with the run's temporary folder.
    env: { PATH: process.env.PATH, TMPDIR: tmpdir(), LOG_LEVEL: 'warn', METRICS_PORT: 'off', ...env },
    stdio: ['pipe', 'pipe', stderr === 'unread' ? 'pipe' : stderr],
  });
  let output = '';
  let errors = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const read = [child.stdout, ...(stderr === 'pipe' ? [child.stderr] : [])].filter(
    (stream) => stream !== null,
  );
  if (stderr === 'pipe') child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, output, errors }));
  async function wrote(text: string) {
    const early = ended.then((end) => {
      throw new Error(`The service ended (${end.code ?? end.signal}) before it wrote ${text}: ${end.errors}`);
    });
    while (!`${output}${errors}`.includes(text))
      await Promise.race([...read.map((stream) => once(stream, 'data')), early]);
    early.catch(() => undefined);
  }
  return {
    child,
    ended,
    wrote,
    async started() {
      await wrote('Database');
      return { output, firstKey: /hfs_\w+/.exec(output)?.[0] };
    },
    async stop(signal = 'SIGTERM') {
      // In a terminal, Ctrl+C.
      if (inTerminal) child.stdin?.write('\u0003');
      else child.kill(signal);
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * A port that was free a moment ago, out of those that no system gives to outgoing connections. Test files that
 * run at the same time get none that another has got, which may not listen there yet.
 */
export async function freePort(): Promise<number> {
  const worker = Number(process.env.VITEST_POOL_ID ?? 0) % PORT_RANGES;
  // The next port is left to those that need two in a row.
  const port = 10_000 + worker * PORTS_A_WORKER + 2 * randomInt(PORTS_A_WORKER / 2);
  if (givenPorts.has(port)) return freePort();
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return freePort();
  }
  server.close();
  await once(server, 'close');
  givenPorts.add(port);
  return port;
}

/** Far more than one worker of a run asks for. */
const PORTS_A_WORKER = 4_400;
const PORT_RANGES = 5;
const givenPorts = new Set<number>();

/** A folder of its own under the system's temporary one, removed at the end of its scope. */
export function temporaryFolder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'forms-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

const root = join(import.meta.dirname, '../..');

type SpawnOptions = {
  args?: string[];
  folder?: string;
  fromSource?: boolean;
  inTerminal?: boolean;
  /** What a shell does before the service takes its place. */
  after?: string;
  /** Where its errors go: an open file, or a pipe that only the caller reads. */
  stderr?: 'pipe' | 'unread' | number;
};

export type SpawnedService = AsyncDisposable & {
  child: ChildProcess;
  /** How it ended, with all it wrote. */
  ended: Promise<Ended>;
  /** Resolves once its output or its errors have this text; rejects if it ends before. */
  wrote(text: string): Promise<void>;
  /** Resolves once it serves, with what it printed; rejects if it ends before. */
  started(): Promise<{ output: string; firstKey: string | undefined }>;
  stop(signal?: NodeJS.Signals): Promise<Ended>;
};

type Ended = { code: number | null; signal: NodeJS.Signals | null; output: string; errors: string };
