import type { PGlite } from '@electric-sql/pglite';
import { type Database, databaseOn } from '../../../src/store/database/database.ts';
import { engineOn } from '../../../src/store/database/pglite.ts';
import type { EmbeddedSession, SessionTransaction } from '../../../src/store/embedded/session.ts';
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
  return databaseOn(await engineOn(sessionOf(process, pglite, options), options.log));
}

function sessionOf(
  process: Process,
  pglite: PGlite,
  { statements, delay, onStatement }: StatementOptions,
): EmbeddedSession {
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

  return {
    ready: true,
    closed: false,
    waitReady: Promise.resolve(),
    query: (sql: string, params: unknown[] = []) =>
      run(fingerprintOf(sql), () => statements(sql, params, wholeTurn, () => pglite.query(sql, params))),
    async transaction<T>(work: (tx: SessionTransaction) => Promise<T>): Promise<T> {
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
            const result = await Promise.race([runAs(process, () => work(own)), process.death]);
            await wait(delay());
            if (!process.isDead) onStatement('before', commit);
            if (process.isDead) throw new ProcessDied();
            return result;
          }),
        ),
      );
      if (process.isDead) return never();
      onStatement('after', commit);
      return process.isDead ? never() : settled();
    },
    listen: (channel: string, handler: () => void) =>
      run('listen', () =>
        pglite.listen(channel, () => {
          if (!process.isDead) runAs(process, handler);
        }),
      ),
  };
}

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
