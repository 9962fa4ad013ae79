import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';

/**
 * Runs `count` processes of the service that share its ports, and replaces each that dies. Resolves
 * with the exit code when all have ended: after a stop, or because the first could not start.
 *
 * The first one prepares the database and tells the person who starts the service what they need to
 * know; the others follow once it serves.
 */
export async function superviseWorkers(count: number, log: Logger): Promise<number> {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stopping = true;
      for (const worker of living()) worker.process.kill('SIGTERM');
    });
  }

  const first = cluster.fork();
  const failed = await Promise.race([
    once(first, 'listening').then(() => undefined),
    once(first, 'exit').then(([code]) => (typeof code === 'number' ? code : 1)),
  ]);
  if (failed !== undefined) return failed;

  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  cluster.on('exit', (worker, code, signal) => {
    if (stopping && living().length === 0) end(0);
    if (stopping) return;
    log.error({ pid: worker.process.pid, code, signal }, 'a worker died; another takes its place');
    void sleep(RESTART_MS).then(() => !stopping && cluster.fork());
  });
  for (let started = 1; started < count; started += 1) cluster.fork();
  return ended;
}

/** Whether this process is one of several that another one started, and not the first of them. */
export function isFurtherWorker(): boolean {
  return cluster.isWorker && cluster.worker?.id !== 1;
}

function living(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

/** A worker that can't live must not be started thousands of times. */
const RESTART_MS = 1_000;
