/**
 * Counts calls, or what else adds up, by key in windows of a minute or `windowMs`, in the memory of this process.
 *
 * It holds at most `capacity` keys: when there are more, those whose window began first are dropped early. That
 * lets some calls through, but memory does not grow.
 */
export function createWindowCounter(options: WindowCounterOptions): WindowCounter {
  const { now, capacity = 100_000, windowMs = MINUTE_MS } = options;
  // All windows are equally long, so the order of insertion is the order of their ends.
  const windows = new Map<string, { hits: number; endsAt: number }>();

  function dropEnded(time: number): void {
    for (const [key, { endsAt }] of windows) {
      if (isOpen(endsAt, time) && windows.size < capacity) return;
      windows.delete(key);
    }
  }

  /** One that would be open for longer than a window lasts began before the clock was set back. */
  function isOpen(endsAt: number, time: number): boolean {
    return endsAt > time && endsAt <= time + windowMs;
  }

  return {
    count(key, amount = 1) {
      const time = now();
      let window = windows.get(key);
      if (window === undefined || !isOpen(window.endsAt, time)) {
        dropEnded(time);
        window = { hits: 0, endsAt: time + windowMs };
        windows.delete(key);
        windows.set(key, window);
      }
      window.hits += amount;
      return { hits: window.hits, endsInMs: window.endsAt - time };
    },
    takeBack(key, amount = 1) {
      const window = windows.get(key);
      if (window !== undefined) window.hits = Math.max(0, window.hits - amount);
    },
  };
}

const MINUTE_MS = 60_000;

export type WindowCounter = {
  /** Counts one call, or so much. `hits` includes it. */
  count(key: string, amount?: number): WindowState;
  /** Undoes a count that has turned out not to be one. In a window that has begun since, it takes away one of that. */
  takeBack(key: string, amount?: number): void;
};

export type WindowState = { hits: number; endsInMs: number };
export type WindowCounterOptions = { now: () => number; capacity?: number; windowMs?: number };
