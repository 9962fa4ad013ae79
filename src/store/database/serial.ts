import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises';

/**
 * Runs work after all that came before it under the same key, and the rest that follows each. What is made of its
 * result at once, such as the lines of a file, counts as its time. `restOf` says how long the rest is, and
 * `longestWaitMs` after which time it begins out of turn.
 */
export async function runSerially<K, T>(
  last: LastRuns<K>,
  key: K,
  work: () => Promise<T>,
  { restOf, longestWaitMs }: SerialOptions,
): Promise<T> {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const before = last.get(key);
  last.set(key, end);
  if (before !== undefined) await (longestWaitMs === undefined ? before : within(before, longestWaitMs));
  const begunAt = performance.now();
  const rest = async () => {
    await yieldToEventLoop();
    const restMs = restOf(performance.now() - begunAt);
    if (restMs > 0) await sleep(restMs);
    resolve();
    if (last.get(key) === end) last.delete(key);
  };
  try {
    return await work();
  } finally {
    void rest();
  }
}

async function within(work: Promise<void>, ms: number): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work, sleep(ms, undefined, { signal: timer.signal })]);
  timer.abort();
}

/** For how long others have the time to themselves after some work; not for much longer after work that was held up. */
export function restAfter(tookMs: number): number {
  return Math.min(3 * tookMs, LONGEST_REST_MS);
}

const LONGEST_REST_MS = 200;

/** The end of the last work of each key, and of the rest after it. */
export type LastRuns<K> = {
  get(key: K): Promise<void> | undefined;
  set(key: K, end: Promise<void>): unknown;
  delete(key: K): unknown;
};

type SerialOptions = { restOf: (tookMs: number) => number; longestWaitMs?: number };
