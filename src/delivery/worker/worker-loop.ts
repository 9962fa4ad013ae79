import { forEverybody } from '../../store/database/read-slots.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { runWith } from '../../telemetry/trace-context.ts';

/**
 * Makes a loop that runs a piece of work when woken: at once, one run at a time, and again as long as the
 * work returns that there is more. Between two runs it pauses for some milliseconds, or as many as the work returns,
 * so that work accumulates while it is woken continually. A run that fails is logged and repeated a second later.
 */
export function createWorkerLoop(
  name: string,
  work: () => Promise<boolean | number>,
  { log, metrics }: WorkerLoopOptions,
): WorkerLoop {
  let running: Promise<void> | undefined;
  let woken = false;
  let stopped = false;
  let pausedUntil = 0;
  let pause: NodeJS.Timeout | undefined;

  const run = async () => {
    pausedUntil = 0;
    woken = false;
    try {
      let next: boolean | number = true;
      while (!stopped && next === true) next = await work();
      metrics?.onWork(name, true);
      pausedUntil = performance.now() + (typeof next === 'number' ? next : PAUSE_MS);
    } catch (error) {
      metrics?.onWork(name, false);
      log.error({ err: error, work: name }, 'Delivery work failed; it is repeated in a second.');
      woken = true;
      pausedUntil = performance.now() + RETRY_MS;
    }
  };

  const start = () => {
    pause = undefined;
    if (running !== undefined || stopped || !woken) return;
    // Whatever request woke it: the work belongs to no request's trace, nor to the reads of a caller.
    running = runWith(undefined, () => forEverybody(run)).finally(() => {
      running = undefined;
      if (woken && !stopped) startAfterPause();
    });
  };

  const startAfterPause = () => {
    pause ??= setTimeout(start, Math.max(0, pausedUntil - performance.now()));
  };

  return {
    isRunning: () => running !== undefined,
    wake() {
      woken = true;
      if (running !== undefined || stopped) return;
      if (performance.now() < pausedUntil) startAfterPause();
      else start();
    },
    async stop() {
      stopped = true;
      clearTimeout(pause);
      await running;
    },
  };
}

/** After a failure, such as a database that is away. */
const RETRY_MS = 1_000;

/** Short beside a delivery, and long enough for a busy form's commits to accumulate. */
const PAUSE_MS = 5;

type WorkerLoopOptions = { log: Log; metrics?: Pick<Metrics, 'onWork'> | undefined };

export type WorkerLoop = {
  wake: () => void;
  isRunning(): boolean;
  /** Waits for the run under way; none begins after it. */
  stop(): Promise<void>;
};
