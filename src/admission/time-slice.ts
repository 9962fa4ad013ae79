/**
 * Does work that can't be interrupted, such as a check of answers: in this turn of the event loop, or in a later one if
 * such work has taken this one's time. A check may take 40 ms for its patterns, and those of ten callers that arrive
 * together would hold up everybody for ten times as long.
 */
export function inTimeSlice<T>(work: () => T): Promise<T> {
  return untilTimeSlice().then(work);
}

/**
 * Waits as `inTimeSlice` does, for callers that go on with such work at once. Requests that read the same row get it
 * together, and each may write a page of it, which takes 3 ms.
 */
export function untilTimeSlice(): Promise<void> {
  return new Promise((begin) => setImmediate(beginInSlice, begin));
}

/** What one immediate begins has ended, as far as it waits for nothing, before the next one is called. */
function beginInSlice(begin: () => void): void {
  const now = performance.now();
  if (turnBegunAt === undefined) {
    turnBegunAt = now;
    setImmediate(endTurn);
  }
  if (now - turnBegunAt > TIME_SLICE_MS) setImmediate(beginInSlice, begin);
  else begin();
}

function endTurn(): void {
  turnBegunAt = undefined;
}

/** When such work began in this turn of the event loop. */
let turnBegunAt: number | undefined;

/** Everyday checks take some microseconds. */
const TIME_SLICE_MS = 5;
