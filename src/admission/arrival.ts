/** Watches that bytes arrive at a rate. One timer serves all that are watched, since nearly all are there at once. */
export function createArrivalWatches({ graceMs, bytesPerSecond }: ArrivalRate): ArrivalWatches {
  const most = (graceMs / 1000) * bytesPerSecond;
  const watched = new Set<ArrivalWatch>();
  let timer: NodeJS.Timeout | undefined;

  function check(): void {
    for (const watch of watched) if (watch.isTooSlow(most / TICKS)) watch.tooSlow();
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    start(tooSlow) {
      const watch = new ArrivalWatch(watched, most, tooSlow);
      watched.add(watch);
      timer ??= setInterval(check, Math.max(1, graceMs / TICKS));
      return watch;
    },
    count: () => watched.size,
  };
}

/** `graceMs` may pass without a byte, and what came faster earlier makes up for no more than that. */
export class ArrivalWatch {
  tooSlow: () => void;
  /** Whether time counts as the sender's. */
  isWaiting = true;
  readonly #watched: Set<ArrivalWatch>;
  readonly #most: number;
  #credit: number;

  constructor(watched: Set<ArrivalWatch>, most: number, tooSlow: () => void) {
    this.#watched = watched;
    this.#most = most;
    this.#credit = most;
    this.tooSlow = tooSlow;
  }

  received(bytes: number): void {
    this.#credit = Math.min(this.#most, this.#credit + bytes);
  }

  /** Takes what must have arrived since the last time. */
  isTooSlow(expected: number): boolean {
    if (this.isWaiting) this.#credit -= expected;
    return this.#credit <= 0;
  }

  /** Lets go of `tooSlow`, too, and so of the body: the request keeps its watch while its call waits. */
  stop(): void {
    this.#watched.delete(this);
    this.tooSlow = nothing;
  }
}

function nothing(): void {}

/** Checks while nothing arrives. */
const TICKS = 20;

/** A body may stop for `graceMs`, but not be slower than `bytesPerSecond` for longer. */
export type ArrivalRate = { graceMs: number; bytesPerSecond: number };

export type ArrivalWatches = {
  /** Begins with all grace; `tooSlow` is called at every check until the watch is stopped. */
  start(tooSlow: () => void): ArrivalWatch;
  /** How many are watched. */
  count(): number;
};
