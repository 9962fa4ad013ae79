import type { Metrics } from '../telemetry/metrics.ts';
import { type ArrivalRate, type ArrivalWatch, type ArrivalWatches, createArrivalWatches } from './arrival.ts';

/**
 * Bounds the bytes of request bodies that a process holds: those of callers who are not known yet, in total and
 * for each client, and apart from them those of callers with a key, whom strangers must not crowd out.
 */
export class BodyBudget {
  readonly arrivals: ArrivalWatches;
  readonly #limits: BodyLimits;
  readonly #metrics: Pick<Metrics, 'onLimit'> | undefined;
  readonly #heldOf = new Map<string, number>();
  #strangers = 0;
  #known = 0;

  constructor(limits: BodyLimits = standardLimits, metrics?: Pick<Metrics, 'onLimit'>) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.arrivals = createArrivalWatches(limits.arrival);
  }

  /** The bytes that are held, of callers who are not known and of the others, and the most that may be. */
  held(): HeldBodies {
    const { strangersBytes, knownBytes } = this.#limits;
    return {
      keyless: { bytes: this.#strangers, most: strangersBytes },
      key: { bytes: this.#known, most: knownBytes },
    };
  }

  /** An account for the body of one request. `clientOf` is asked at most once: undefined for a trusted proxy. */
  open(clientOf: () => string | undefined): BodyAccount {
    return new BodyAccount(this, clientOf);
  }

  /** Counts bytes of a caller with a key; returns false, and counts nothing, if they are too many. */
  addKnown(bytes: number): boolean {
    if (bytes > 0 && this.#known + bytes > this.#limits.knownBytes) return this.#refuse();
    this.#known += bytes;
    return true;
  }

  /** Does the same for a client who is not known. */
  addOf(client: string | undefined, bytes: number): boolean {
    const held = (client === undefined ? 0 : (this.#heldOf.get(client) ?? 0)) + bytes;
    const { strangersBytes, clientBytes } = this.#limits;
    if (bytes > 0 && (this.#strangers + bytes > strangersBytes || held > clientBytes)) return this.#refuse();
    this.#strangers += bytes;
    if (client === undefined) return true;
    if (held === 0) this.#heldOf.delete(client);
    else this.#heldOf.set(client, held);
    return true;
  }

  #refuse(): false {
    this.#metrics?.onLimit('body_bytes');
    return false;
  }
}

/** What the body of one request holds. */
export class BodyAccount {
  readonly #budget: BodyBudget;
  readonly #clientOf: () => string | undefined;
  #client: string | undefined;
  #isKnown = false;
  #held = 0;
  #watch: ArrivalWatch | undefined;

  constructor(budget: BodyBudget, clientOf: () => string | undefined) {
    this.#budget = budget;
    this.#clientOf = clientOf;
  }

  /** Watches that the body arrives, until `free` at the latest: whoever reads it may leave it unread. */
  watch(tooSlow: () => void): ArrivalWatch {
    this.#watch?.stop();
    this.#watch = this.#budget.arrivals.start(tooSlow);
    return this.#watch;
  }

  /** Counts that many bytes more; returns false, and counts nothing, if they are too many. */
  hold(bytes: number): boolean {
    const isFirst = this.#held === 0;
    if (isFirst && !this.#isKnown) this.#client = this.#clientOf();
    const all = isFirst ? BODY_OVERHEAD + bytes : bytes;
    if (!this.#add(all)) return false;
    this.#held += all;
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
    this.#held = 0;
  }

  #add(bytes: number): boolean {
    return this.#isKnown ? this.#budget.addKnown(bytes) : this.#budget.addOf(this.#client, bytes);
  }
}

/** What a body costs that has hardly begun to arrive: stream, request, response and call. */
const BODY_OVERHEAD = 4 * 1024;

const MIB = 1024 * 1024;

/**
 * Twenty seconds of grace as in Apache's mod_reqtimeout. Its 500 bytes a second would let 256 KiB be held for nine
 * minutes; this is a third of what EDGE, the slowest mobile network in use, sends.
 */
export const standardArrival: ArrivalRate = { graceMs: 20_000, bytesPerSecond: 4 * 1024 };

export const standardLimits: BodyLimits = {
  strangersBytes: 64 * MIB,
  // The largest body, an upload by RPC, has 11.
  clientBytes: 12 * MIB,
  knownBytes: 128 * MIB,
  arrival: standardArrival,
};

type HeldBodies = Record<'keyless' | 'key', { bytes: number; most: number }>;

export type BodyLimits = {
  strangersBytes: number;
  clientBytes: number;
  knownBytes: number;
  arrival: ArrivalRate;
};
