import { setImmediate as yieldToEventLoop } from 'node:timers/promises';

/**
 * Does work that can't be interrupted, such as a check of answers: at once, or in a later turn of the event loop if
 * such work has taken this one's time. A check may take 40 ms for its patterns, and those of ten callers that arrive
 * together would hold up everybody for ten times as long.
 */
export async function inTimeSlice<T>(work: () => T): Promise<T> {
  while (spentMs > TIME_SLICE_MS) await yieldToEventLoop();
  const begunAt = performance.now();
  try {
    return work();
  } finally {
    // Before those that wait go on.
    if (spentMs === 0) setImmediate(endSlice);
    spentMs += performance.now() - begunAt;
  }
}

function endSlice(): void {
  spentMs = 0;
}

/** In this turn of the event loop. */
let spentMs = 0;

/** Everyday checks take some microseconds. */
const TIME_SLICE_MS = 5;
