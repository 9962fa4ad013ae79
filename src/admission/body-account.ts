import { type ArrivalRate, bodyBounds } from './bounds.ts';
import type { Client, Count } from './client.ts';

/** What the body of one request holds. */
export class BodyAccount {
  readonly #bodies: Bodies;
  readonly #clientOf: () => Client | undefined;
  #counts: readonly Count[] = [];
  #client: Client | undefined;
  #isKnown = false;
  #held = 0;
  #watch: ArrivalWatch | undefined;

  /** `clientOf` is asked at the first byte: undefined for a proxy that is believed but names nobody. */
  constructor(bodies: Bodies, clientOf: () => Client | undefined) {
    this.#bodies = bodies;
    this.#clientOf = clientOf;
  }

  /** Watches that the body arrives, until `free` at the latest: its reader may leave it unread. */
  watch(tooSlow: () => void): ArrivalWatch {
    this.#watch?.stop();
    this.#watch = this.#bodies.arrivals.start(tooSlow);
    return this.#watch;
  }

  /** Counts that many bytes more; returns false, and counts nothing, if they are too many. */
  hold(bytes: number): boolean {
    const isFirst = this.#held === 0;
    if (isFirst) this.#counts = this.#countsOfCaller();
    const all = isFirst ? bodyBounds.overheadBytes + bytes : bytes;
    if (!this.#counts.every((count) => count.hasRoom(all))) {
      this.#bodies.onRefused();
      this.#client?.changed();
      return false;
    }
    this.#add(all);
    return true;
  }

  /** Its caller has shown a key, so what it holds does not count as strangers'. Before the first byte. */
  setKnown(): void {
    if (this.#held === 0) this.#isKnown = true;
  }

  /** Gives everything back, and ends the watch. */
  free(): void {
    this.#watch?.stop();
    if (this.#held > 0) this.#add(-this.#held);
    this.#client?.changed();
  }

  #countsOfCaller(): readonly Count[] {
    if (this.#isKnown) return [this.#bodies.known];
    this.#client = this.#clientOf();
    return [this.#bodies.strangers, ...(this.#client === undefined ? [] : [this.#client.bodyBytes])];
  }

  #add(bytes: number): void {
    for (const count of this.#counts) count.held += bytes;
    this.#held += bytes;
  }
}

/** The bytes of all bodies that are held, of clients without a key and of callers with one. */
export type Bodies = {
  arrivals: ArrivalWatches;
  strangers: Count;
  known: Count;
  onRefused: () => void;
};

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

export type ArrivalWatches = {
  /** Begins with all grace; `tooSlow` is called at every check until the watch is stopped. */
  start(tooSlow: () => void): ArrivalWatch;
  /** How many are watched. */
  count(): number;
};
