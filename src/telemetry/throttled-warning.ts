import type { Log } from './log.ts';

/**
 * Warns once in `everyMs` at most, and counts the warnings left out: what fails for one reason fails often.
 */
export function throttledWarning(log: Log, now: () => number, everyMs: number): Warn {
  let warnedAt = Number.NEGATIVE_INFINITY;
  let leftOut = 0;
  return (facts, message) => {
    // A clock may be set back.
    if (Math.abs(now() - warnedAt) < everyMs) {
      leftOut += 1;
      return;
    }
    log.warn({ ...facts, ...(leftOut > 0 && { leftOut }) }, message);
    warnedAt = now();
    leftOut = 0;
  };
}

type Warn = (facts: object, message: string) => void;
