import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Row } from '../database/queries.ts';
import { takesLong } from '../database/read-slots.ts';
import type { DatabasePlace } from './files.ts';
import type { DatabaseAnswer, DatabaseCall, ThreadInput } from './messages.ts';

/**
 * Opens the embedded database in a thread of its own: a statement holds its thread until it has ended, and all that
 * the service does besides would wait for it.
 *
 * There is one session for everything: a query waits while a transaction is open, so work inside a
 * transaction must use nothing but that transaction.
 */
export async function openEmbeddedSession({ place, dump }: DatabasePlace): Promise<OpenedSession> {
  // A Blob that is of a file can't be sent.
  const workerData: ThreadInput = { place, dump: await dump?.arrayBuffer() };
  const thread = new Worker(new URL('./thread.ts', import.meta.url), { workerData });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const listeners = new Map<number, () => void>();
  let calls = 0;
  let transactions = 0;
  let isClosed = false;

  function call(request: DatabaseCall): { id: number; answer: Promise<unknown> } {
    calls += 1;
    const id = calls;
    thread.postMessage({ ...request, id });
    const answered = Promise.withResolvers<unknown>();
    waiting.set(id, answered);
    return { id, answer: answered.promise };
  }

  function receive({ id, result, error }: DatabaseAnswer): void {
    const answered = waiting.get(id);
    waiting.delete(id);
    if (answered === undefined) listeners.get(id)?.();
    else if (error === undefined) answered.resolve(result);
    else answered.reject(Object.assign(new Error(error.message), error));
  }

  async function run(statement: Omit<StatementCall, 'what'>): Promise<Result> {
    if (isClosed && statement.transaction === undefined) throw new Error('The embedded database is closed');
    return (await call({ what: 'statement', ...statement }).answer) as Result;
  }

  await once(thread, 'message');
  thread.once('exit', () => {
    if (!isClosed) throw new Error('The thread of the embedded database has ended');
  });
  // Without this, Node takes up to a thousand answers in one turn of the event loop, and nothing else runs meanwhile.
  thread.on('message', (answer: DatabaseAnswer) => setImmediate(receive, answer));

  return {
    ready: true,
    waitReady: Promise.resolve(),
    get closed() {
      return isClosed;
    },
    query: (sql, params, { prepared = false } = {}) => run({ sql, params, prepared, isLate: takesLong() }),
    async transaction(work) {
      transactions += 1;
      const transaction = transactions;
      await run({ sql: 'begin', transaction, step: 'begin', isLate: takesLong() });
      const end = (sql: string) => run({ sql, transaction, step: 'end' });
      const result = await work({ query: (sql, params) => run({ sql, params, transaction }) }).catch(
        async (error: unknown) => {
          await end('rollback');
          throw error;
        },
      );
      await end('commit');
      return result;
    },
    async listen(channel, handler) {
      const { id, answer } = call({ what: 'listen', channel });
      listeners.set(id, handler);
      await answer;
      return async () => {
        listeners.delete(id);
        await call({ what: 'unlisten', listener: id }).answer;
      };
    },
    dump: async () => (await call({ what: 'dump' }).answer) as Blob,
    async close() {
      isClosed = true;
      const ended = once(thread, 'exit');
      await call({ what: 'close' }).answer;
      await ended;
    },
  };
}

/** What MikroORM uses of PGlite, and the service besides. */
export type EmbeddedSession = {
  readonly closed: boolean;
  ready: boolean;
  waitReady: Promise<void>;
  /** Runs a statement outside transactions. `prepared`: its plan is kept. */
  query(sql: string, params?: unknown[], options?: { prepared?: boolean }): Promise<Result>;
  /** Runs `work` in a transaction, which is rolled back if it throws. */
  transaction<T>(work: (tx: SessionTransaction) => Promise<T>): Promise<T>;
  /** Calls `handler` for each notification. Returns what stops it. */
  listen(channel: string, handler: () => void): Promise<() => Promise<void>>;
};

export type SessionTransaction = Pick<EmbeddedSession, 'query'>;

export type OpenedSession = EmbeddedSession & {
  /** The whole data folder as a tar file. */
  dump(): Promise<Blob>;
  /** Closes the database after all that runs or waits. */
  close(): Promise<void>;
};

type Result = { rows: Row[]; affectedRows?: number };

type StatementCall = Extract<DatabaseCall, { what: 'statement' }>;
