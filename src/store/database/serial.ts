import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises';

/**
 * Runs work after all that came before it under the same key, and the rest that follows each: until the event loop has
 * been idle for `idleFactor` times as long as the work took, or for `LONGEST_REST_MS`. What is made of its result at
 * once, such as the lines of a file, counts as its time. After `longestWaitMs` it begins out of turn.
 */
export async function runSerially<K, T>(
  last: LastRuns<K>,
  key: K,
  work: () => Promise<T>,
  { idleFactor, longestWaitMs }: SerialOptions,
): Promise<T> {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const before = last.get(key);
  last.set(key, end);
  if (before !== undefined) await (longestWaitMs === undefined ? before : within(before, longestWaitMs));
  const begunAt = performance.now();
  const rest = async () => {
    await yieldToEventLoop();
    await untilIdle(idleFactor() * (performance.now() - begunAt));
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

/** Waits until the event loop has been idle for so long from now on. The more others do, the longer that takes. */
async function untilIdle(ms: number): Promise<void> {
  const idleMs = () => performance.eventLoopUtilization().idle;
  const end = performance.now() + LONGEST_REST_MS;
  const enough = idleMs() + ms;
  let left = ms;
  while (left > 0 && performance.now() < end) {
    await sleep(Math.min(left, LONGEST_REST_MS));
    left = enough - idleMs();
  }
}

/** Work that was held up takes long, and a loop may never be idle. */
const LONGEST_REST_MS = 200;

/** The idle time after work that takes long, to the time that it took, while others use the service. */
export const IDLE_FOR_OTHERS = 2;

/** The end of the last work of each key, and of the rest after it. */
export type LastRuns<K> = {
  get(key: K): Promise<void> | undefined;
  set(key: K, end: Promise<void>): unknown;
  delete(key: K): unknown;
};

type SerialOptions = { idleFactor: () => number; longestWaitMs?: number };
