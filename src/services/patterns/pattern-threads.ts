import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { failed } from '../../rpc/errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { createFairQueue, type Owner } from './fair-queue.ts';

/**
 * Matches texts against patterns in worker threads, since re2js can't be interrupted.
 *
 * Throws UNAVAILABLE if that takes longer than the time limit (the thread is ended and another takes its place), or
 * if too much waits. Threads start when there is work and end after a minute without any.
 */
export function createPatternThreads({ log, timeLimitMs = TIME_LIMIT_MS }: ThreadOptions): PatternThreads {
  const queue = createFairQueue<Job>();
  const idle = new Set<() => void>();
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();

  function startThread(): void {
    const thread = runThread().finally(() => {
      running.delete(thread);
      if (queue.size() > 0) startThread();
    });
    running.add(thread);
  }

  async function runThread(): Promise<void> {
    const worker = new Worker(new URL('pattern-thread.ts', import.meta.url), {
      resourceLimits,
      execArgv: [],
    });
    worker.unref();
    // Between two jobs nobody else listens; the next job then takes too long, which ends the thread.
    worker.on('error', (error) => log.error({ err: error }, 'A thread that matches patterns failed.'));
    try {
      await nextMessage(worker, START_LIMIT_MS);
      for (let job = await nextJob(); job !== undefined; job = await nextJob()) {
        if (!(await run(worker, job))) break;
      }
    } catch (error) {
      if (stopping.signal.aborted) return;
      log.error(
        { err: error },
        'No thread to match patterns could be started; what waits for one is refused.',
      );
      refuseWaiting();
    } finally {
      await worker.terminate();
    }
  }

  /** Whether the thread can go on. */
  async function run(worker: Worker, job: Job): Promise<boolean> {
    worker.postMessage(job.tasks);
    try {
      job.resolve(await nextMessage(worker, timeLimitMs));
      return true;
    } catch (error) {
      job.reject(unavailable('Matching the patterns of this form took too long'));
      if (stopping.signal.aborted) return false;
      const formId = job.owner.form;
      log.warn({ formId, err: error }, 'Matching the patterns of a form took too long; the call is refused.');
      return false;
    }
  }

  async function nextMessage(worker: Worker, limitMs: number): Promise<boolean[]> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(limitMs)]);
    const [message] = await once(worker, 'message', { signal });
    return message;
  }

  /** Undefined if there is none for a while. */
  async function nextJob(): Promise<Job | undefined> {
    for (;;) {
      if (queue.size() === 0 && !stopping.signal.aborted) await rest();
      const job = queue.shift();
      if (job === undefined || performance.now() - job.since < MAX_WAIT_MS) return job;
      job.reject(overloaded());
    }
  }

  async function rest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, IDLE_MS).unref();
    idle.add(resolve);
    await promise;
    idle.delete(resolve);
    clearTimeout(timer);
  }

  function refuseWaiting(): void {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) job.reject(overloaded());
  }

  return {
    match(owner, tasks) {
      return new Promise((resolve, reject) => {
        const job = { owner, tasks, since: performance.now(), resolve, reject };
        if (stopping.signal.aborted || !queue.push(owner, job)) return reject(overloaded());
        const [wake] = idle;
        if (wake !== undefined) {
          idle.delete(wake);
          wake();
        } else if (running.size < MAX_THREADS) startThread();
      });
    },
    async close() {
      stopping.abort();
      refuseWaiting();
      for (const wake of idle) wake();
      await Promise.all(running);
    },
  };
}

function overloaded() {
  return unavailable('Too many texts wait to be matched against patterns');
}

function unavailable(message: string) {
  return failed(Reason.UNAVAILABLE, message, { retryAfter: RETRY_AFTER_S });
}

/** The event loop keeps a core of its own; more than two threads would only serve attackers. */
const MAX_THREADS = Math.min(2, Math.max(1, availableParallelism() - 1));

/**
 * One and a half times what the most expensive form takes that is accepted, on a machine such as it was measured on.
 */
const TIME_LIMIT_MS = 3_000;

/** A thread starts within 0.2 s on an idle machine. */
const START_LIMIT_MS = 10_000;

const IDLE_MS = 60_000;

/** People wait no longer for an answer. */
const MAX_WAIT_MS = 8_000;

const RETRY_AFTER_S = 5;

/** Compiled patterns take up to 64 MiB; matching needs a few bytes for each instruction. */
const resourceLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16 };

export type PatternThreads = {
  /** Whether each text matches its pattern, in their order. */
  match: (owner: Owner, tasks: readonly PatternTask[]) => Promise<boolean[]>;
  /** Refuses what is under way and ends the threads. */
  close: () => Promise<void>;
};

/** A text to match, whole, against the source of a pattern. */
export type PatternTask = { source: string; text: string };

export type ThreadOptions = { log: Log; timeLimitMs?: number | undefined };

type Job = {
  owner: Owner;
  tasks: readonly PatternTask[];
  /** When it came, by the monotonic clock in milliseconds. */
  since: number;
  resolve: (matched: boolean[]) => void;
  reject: (error: Error) => void;
};
