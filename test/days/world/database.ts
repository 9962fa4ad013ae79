import type { PGlite } from '@electric-sql/pglite';
import { type Database, databaseOn } from '../../../src/store/database/database.ts';
import { engineOn } from '../../../src/store/database/pglite.ts';
import type { Log } from '../../../src/telemetry/log.ts';
import { fingerprintOf } from './fingerprint.ts';
import { type Owner, runAs } from './scheduler.ts';
import type { RunStatement } from './statements.ts';

/**
 * The database as one process of the service sees it, on the session that all of them share. Every statement takes
 * the time that `delay` says, and `onStatement` is told before and after it; the process can die then. What has not
 * begun then never does, what ran has no answer, and an open transaction is rolled back.
 */
export async function databaseOf(
  process: Process,
  pglite: PGlite,
  options: StatementOptions,
): Promise<Database> {
  const session = sessionOf(process, pglite, options);
  return databaseOn(await engineOn(session as unknown as PGlite, options.log));
}

function sessionOf(process: Process, pglite: PGlite, { statements, delay, onStatement }: StatementOptions) {
  const oneTurn = <T>(work: () => Promise<T>) => pglite._runExclusiveQuery(work);
  const wholeTurn = <T>(work: () => Promise<T>) => pglite._runExclusiveTransaction(() => oneTurn(work));

  const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

  async function run<T>(fingerprint: string, work: () => Promise<T>): Promise<T> {
    if (process.isDead) return never();
    using _busy = process.busy();
    await wait(delay());
    if (process.isDead) return never();
    onStatement('before', fingerprint);
    if (process.isDead) return never();
    const settled = await settle(runAs(undefined, work));
    onStatement('after', fingerprint);
    return process.isDead ? never() : settled();
  }

  /** A process that dies gives its turn back. */
  async function inTurn<T>(take: (work: () => Promise<T>) => Promise<T>, work: () => Promise<T>): Promise<T> {
    const settled = await settle(
      runAs(undefined, () =>
        take(() => {
          if (process.isDead) throw new ProcessDied();
          return Promise.race([runAs(process, work), process.death]);
        }),
      ),
    );
    return process.isDead ? never() : settled();
  }

  const sqlOf = new Map<string, string>();
  return {
    ready: true,
    closed: false,
    waitReady: Promise.resolve(),
    parsers: pglite.parsers,
    serializers: pglite.serializers,
    query: (sql: string, params: unknown[] = []) =>
      run(fingerprintOf(sql), () => statements(sql, params, wholeTurn, () => pglite.query(sql, params))),
    exec: (sql: string) => run(fingerprintOf(sql), () => pglite.exec(sql)),
    async transaction(work: (tx: object) => Promise<unknown>) {
      if (process.isDead) return never();
      using _busy = process.busy();
      await wait(delay());
      if (process.isDead) return never();
      let commit = 'commit';
      const settled = await settle(
        runAs(undefined, () =>
          pglite.transaction(async (tx) => {
            if (process.isDead) throw new ProcessDied();
            const own = {
              query(sql: string, params: unknown[] = []) {
                const fingerprint = fingerprintOf(sql);
                if (commit === 'commit') commit = `commit of: ${fingerprint}`;
                return run(fingerprint, () => statements(sql, params, oneTurn, () => tx.query(sql, params)));
              },
            };
            await Promise.race([runAs(process, () => work(own)), process.death]);
            await wait(delay());
            if (!process.isDead) onStatement('before', commit);
            if (process.isDead) throw new ProcessDied();
          }),
        ),
      );
      if (process.isDead) return never();
      onStatement('after', commit);
      return process.isDead ? never() : settled();
    },
    _runExclusiveTransaction: <T>(work: () => Promise<T>) =>
      inTurn<T>((turn) => pglite._runExclusiveTransaction(turn), work),
    _runExclusiveQuery: <T>(work: () => Promise<T>) =>
      inTurn<T>((turn) => pglite._runExclusiveQuery(turn), work),
    execProtocolStream(message: Uint8Array) {
      const { parsed, bound } = readNames(message);
      if (parsed !== undefined) sqlOf.set(parsed.name, parsed.sql);
      const sql = bound === undefined ? undefined : sqlOf.get(bound);
      const work = () => pglite.execProtocolStream(message);
      return sql === undefined ? work() : run(fingerprintOf(sql), work);
    },
    listen: (channel: string, handler: () => void) =>
      run('listen', () =>
        pglite.listen(channel, () => {
          if (!process.isDead) runAs(process, handler);
        }),
      ),
  };
}

/** The statement that a message prepares, and the name of the one that it runs. */
function readNames(message: Uint8Array): Named {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.length);
  const named: Named = {};
  for (let at = 0; at < bytes.length; ) {
    const type = bytes.toString('latin1', at, at + 1);
    const end = at + 1 + bytes.readInt32BE(at + 1);
    const [first = '', second = ''] = bytes.toString('utf8', at + 5, end).split('\0', 2);
    if (type === 'P') named.parsed = { name: first, sql: second };
    if (type === 'B') named.bound = second;
    at = end;
  }
  return named;
}

type Named = { parsed?: { name: string; sql: string }; bound?: string };

/** The outcome, to be had later. */
function settle<T>(promise: Promise<T>): Promise<() => T> {
  return promise.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

class ProcessDied extends Error {
  override name = 'ProcessDied';
}

/** A process of the service. `death` rejects when it dies. */
export type Process = Owner & {
  death: Promise<never>;
  /** Counts a statement or transaction as under way. */
  busy: () => Disposable;
};

type StatementOptions = {
  /** What runs statements on the session. */
  statements: RunStatement;
  /** Milliseconds. */
  delay: () => number;
  onStatement: (when: 'before' | 'after', fingerprint: string) => void;
  log: Log;
};
