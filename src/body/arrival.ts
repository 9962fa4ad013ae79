/**
 * Watches that bytes arrive at a rate, and calls `tooSlow` once if they do not: `graceMs` may pass without any, and
 * what came faster earlier makes up for no more than that.
 */
export function watchArrival({ graceMs, bytesPerSecond }: ArrivalRate, tooSlow: () => void): ArrivalWatch {
  const tickMs = Math.max(1, graceMs / TICKS);
  const most = (graceMs / 1000) * bytesPerSecond;
  let credit = most;
  let waiting = true;
  const timer = setInterval(() => {
    if (!waiting) return;
    credit -= most / TICKS;
    if (credit > 0) return;
    clearInterval(timer);
    tooSlow();
  }, tickMs);
  return {
    received(bytes) {
      credit = Math.min(most, credit + bytes);
    },
    setWaiting(isWaiting) {
      waiting = isWaiting;
    },
    stop: () => clearInterval(timer),
  };
}

/** Checks while nothing arrives. */
const TICKS = 20;

/** A body may stop for `graceMs`, but not be slower than `bytesPerSecond` for longer. */
export type ArrivalRate = { graceMs: number; bytesPerSecond: number };

type ArrivalWatch = {
  received(bytes: number): void;
  /** Whether time counts as the sender's; at first it does. */
  setWaiting(isWaiting: boolean): void;
  stop(): void;
};
