/**
 * Keeps how many deliveries each receiver may have claimed at a time: a few at first, one more with each
 * quick answer up to `max`, and one after a slow answer or none.
 *
 * Keeps as well how many places the receivers of a share have that are not known to be quick: `unproven` at
 * first and after each of them that was slow, and one more with each that was quick, up to `TRUSTED` times as many.
 */
export function createConcurrency({ max, unproven }: ConcurrencyOptions): Concurrency {
  const initial = Math.min(max, INITIAL_CONCURRENCY);
  /** The receiver that answered last is at the end, as in `lastAnswered`. */
  const limits = new Map<string, { limit: number; answeredAt: number }>();
  const lastAnswered = new Map<string, Receiver>();
  const shares = new Map<string, number>();
  const isQuick = (key: string) => {
    const { limit, answeredAt } = limits.get(key) ?? { limit: 0, answeredAt: 0 };
    return limit > 1 && performance.now() - answeredAt < RECENT_MS;
  };
  return {
    initial,
    of: (key) => limits.get(key)?.limit ?? initial,
    ofUnproven: (share) => shares.get(share) ?? unproven,
    isQuick,
    known: () => [...lastAnswered.values()],
    adjust(receiver, tookMs) {
      const { share } = receiver;
      const key = keyOf(receiver);
      const slow = tookMs >= SLOW_MS;
      const before = limits.get(key)?.limit ?? initial;
      const places = shares.get(share) ?? unproven;
      if (slow) shares.delete(share);
      else if (!isQuick(key)) putLast(shares, share, Math.min(TRUSTED * unproven, places + 1), MAX_KNOWN);
      const limit = slow ? 1 : Math.min(max, before + 1);
      putLast(limits, key, { limit, answeredAt: performance.now() }, MAX_KNOWN);
      putLast(lastAnswered, key, receiver, MAX_NAMED);
      return slow;
    },
  };
}

/** The name of a receiver by which each share counts it apart. */
export function keyOf({ share, receiver }: Receiver): string {
  return `${share}\n${receiver}`;
}

/** Puts an entry to the end of a map, which loses its first one if it is full. */
function putLast<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

const INITIAL_CONCURRENCY = 4;

/** So many are under way from a claim to the stored result when the workers are busy with a thousand receivers. */
const TRUSTED = 8;

/** A slower receiver takes more than its share of the workers' time. */
const SLOW_MS = 2_000;

/** What an answer says about the next one for: a receiver that goes away with a thousand others is doubted soon. */
const RECENT_MS = 60_000;

/** A few MB. */
const MAX_KNOWN = 10_000;

/** The names of those that answered last are parameters of each claim. */
const MAX_NAMED = 200;

export type ConcurrencyOptions = {
  /** For one receiver. */
  max: number;
  /** For all receivers of a share together that are not known to be quick. */
  unproven: number;
};

export type Concurrency = {
  /** The limit of a receiver that is not known. */
  initial: number;
  /** `key` is that of `keyOf`. */
  of(key: string): number;
  /** How many places a share has for receivers that are not known to be quick. */
  ofUnproven(share: string): number;
  /** Whether its last answer was quick, and less than a minute ago. */
  isQuick(key: string): boolean;
  /** Those that answered last. */
  known(): Receiver[];
  /** Adjusts the limits to how long an answer, or the lack of one, took. True if that was slow. */
  adjust(receiver: Receiver, tookMs: number): boolean;
};

/** One may belong to two shares: a webhook that gets what comes to all forms of its project. */
export type Receiver = { share: string; receiver: string };
