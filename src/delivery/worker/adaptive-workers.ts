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
  let expectedAt = 0;
  let usedAt = 0;
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    const at = performance.now();
    const slow = at - expectedAt > SLOW_LOOP_MS || databaseMs > SLOW_DATABASE_MS;
    expectedAt = at + TICK_MS;
    databaseMs = 0;
    limit = slow ? Math.max(min, limit * DECREASE) : Math.min(max, limit + max / INCREASES);
    if (limit === max && at - usedAt > UNUSED_MS) stop();
  }

  /** An idle process has nothing to measure. */
  function keepTicking(): void {
    usedAt = performance.now();
    if (timer !== undefined) return;
    expectedAt = usedAt + TICK_MS;
    timer = setInterval(tick, TICK_MS).unref();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    current: () => Math.floor(limit),
    async measure(work) {
      keepTicking();
      const begun = performance.now();
      try {
        return await work();
      } finally {
        databaseMs = Math.max(databaseMs, performance.now() - begun);
      }
    },
    stop,
  };
}

const TICK_MS = 100;

/** Longer than any pause of a loop that has something to deliver. */
const UNUSED_MS = 5_000;

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
