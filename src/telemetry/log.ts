import type { Logger } from 'pino';

/** What the service logs with: a pino logger, or anything that takes the same calls, such as the console. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'> & Partial<Pick<Logger, 'isLevelEnabled'>>;

/**
 * Logs `lines` lines in `everyMs` at most, one by default, and counts those left out: what fails for one reason fails
 * often.
 */
export function throttledWarning(log: Log, now: () => number, everyMs: number, lines = 1): Warn {
  let beganAt = Number.NEGATIVE_INFINITY;
  let logged = 0;
  let leftOut = 0;
  return (facts, message, level = 'warn') => {
    // A clock may be set back.
    if (Math.abs(now() - beganAt) >= everyMs) {
      beganAt = now();
      logged = 0;
    }
    if (logged === lines) {
      leftOut += 1;
      return;
    }
    log[level]({ ...facts, ...(leftOut > 0 && { leftOut }) }, message);
    logged += 1;
    leftOut = 0;
  };
}

export type Warn = (facts: object, message: string, level?: 'info' | 'warn' | 'error') => void;
