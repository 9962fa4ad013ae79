import type { ArrivalWatch, ArrivalWatches } from './arrival.ts';
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

  /** Watches that the body arrives, until `free` at the latest: whoever reads it may leave it unread. */
  watch(tooSlow: () => void): ArrivalWatch {
    this.#watch?.stop();
    this.#watch = this.#bodies.arrivals.start(tooSlow);
    return this.#watch;
  }

  /** Counts that many bytes more; returns false, and counts nothing, if they are too many. */
  hold(bytes: number): boolean {
    const isFirst = this.#held === 0;
    if (isFirst) this.#counts = this.#countsOfCaller();
    const all = isFirst ? BODY_OVERHEAD + bytes : bytes;
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

/** What a body costs that has hardly begun to arrive: stream, request, response and call. */
const BODY_OVERHEAD = 4 * 1024;

/** The bytes of all bodies that are held, of clients without a key and of callers with one. */
export type Bodies = {
  arrivals: ArrivalWatches;
  strangers: Count;
  known: Count;
  onRefused: () => void;
};
