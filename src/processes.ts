import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';

/**
 * Runs `count` processes of the service that share its ports, and replaces each that exits. Resolves
 * with the exit code when all have ended: after a stop, or because the first could not start.
 *
 * The first process prepares the database and prints addresses and key; the others start once it serves.
 */
export async function superviseWorkers(count: number, log: Logger): Promise<number> {
  let stopping = false;
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stopping = true;
      const running = runningWorkers();
      for (const worker of running) worker.process.kill('SIGTERM');
      if (running.length === 0) end(0);
    });
  }

  const first = fork(1);
  const failed = await Promise.race([
    once(first, 'listening').then(() => undefined),
    once(first, 'exit').then(([code]) => (typeof code === 'number' ? code : 1)),
  ]);
  if (failed !== undefined) return failed;

  cluster.on('exit', (worker, code, signal) => {
    if (stopping && runningWorkers().length === 0) end(0);
    if (stopping) return;
    log.error(
      { pid: worker.process.pid, code, signal },
      'A worker exited; another one replaces it in a second.',
    );
    void sleep(RESTART_MS).then(() => !stopping && fork(numberOf(worker)));
  });
  for (let number = 2; number <= count; number += 1) fork(number);
  return ended;
}

/**
 * The number of this process among the workers, from 1: the one that replaces another has its number. 1 for a process
 * without workers.
 */
export function workerNumber(): number {
  return cluster.isWorker ? Number(process.env[NUMBER]) : 1;
}

function fork(number: number): Worker {
  const worker = cluster.fork({ [NUMBER]: String(number) });
  numbers.set(worker, number);
  return worker;
}

function numberOf(worker: Worker): number {
  return numbers.get(worker) ?? 1;
}

const numbers = new WeakMap<Worker, number>();

/** The variable that tells a worker its number. */
const NUMBER = 'FORMS_WORKER_NUMBER';

/** Whether this process is a worker, but not the first one. */
export function isFurtherWorker(): boolean {
  return cluster.isWorker && cluster.worker?.id !== 1;
}

function runningWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

/** So that a worker that can't start is not started again and again without a pause. */
const RESTART_MS = 1_000;
