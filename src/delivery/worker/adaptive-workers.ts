/**
 * Keeps how many deliveries may be sent at once to receivers that answer quickly, so that accepting comes first:
 * fewer while the event loop or the database is slow, down to an eighth of `max`, and all again when both are quick.
 * What is not sent meanwhile waits in the queue.
 *
 * What delivering itself adds counts too: at a loop or a database that is busy all the time, more deliveries
 * at once would not be made sooner.
 */
export function createAdaptiveWorkers(max: number): AdaptiveWorkers {
  const min = Math.max(1, Math.floor(max / 8));
  let limit = max;
  let databaseMs = 0;
  let expectedAt = performance.now() + TICK_MS;
  const timer = setInterval(() => {
    const lateMs = performance.now() - expectedAt;
    expectedAt = performance.now() + TICK_MS;
    const slow = lateMs > SLOW_LOOP_MS || databaseMs > SLOW_DATABASE_MS;
    databaseMs = 0;
    limit = slow ? Math.max(min, limit * DECREASE) : Math.min(max, limit + max / INCREASES);
  }, TICK_MS);
  timer.unref();

  return {
    current: () => Math.floor(limit),
    async measure(work) {
      const begun = performance.now();
      try {
        return await work();
      } finally {
        databaseMs = Math.max(databaseMs, performance.now() - begun);
      }
    },
    stop: () => clearInterval(timer),
  };
}

const TICK_MS = 100;

/** A turn of the event loop that serves some hundred requests. */
const SLOW_LOOP_MS = 40;

/** Claims and results take 5 to 40 ms of a database that keeps up. */
const SLOW_DATABASE_MS = 250;

/** Quick to yield, and all back two seconds after the load is gone. */
const DECREASE = 0.7;
const INCREASES = 20;

export type AdaptiveWorkers = {
  /** A whole number of at least 1. */
  current(): number;
  /** Runs a statement of the delivery queue, and takes how long it lasts as the database's latency. */
  measure<T>(work: () => Promise<T>): Promise<T>;
  stop(): void;
};
