/**
 * Keeps how many deliveries each receiver may have claimed at a time: a few at first, one more with each
 * quick answer up to `max`, and one after a slow answer or none.
 */
export function createConcurrency(max: number): Concurrency {
  const initial = Math.min(max, INITIAL_CONCURRENCY);
  /** The receiver that answered last is at the end. */
  const limits = new Map<string, { share: string; limit: number }>();
  return {
    initial,
    of: (receiver) => limits.get(receiver)?.limit ?? initial,
    isQuick: (receiver) => (limits.get(receiver)?.limit ?? 0) > 1,
    known: () => [...limits].map(([receiver, { share }]) => ({ share, receiver })),
    adjust({ share, receiver }, tookMs) {
      const slow = tookMs >= SLOW_MS;
      const before = limits.get(receiver)?.limit ?? initial;
      limits.delete(receiver);
      limits.set(receiver, { share, limit: slow ? 1 : Math.min(max, before + 1) });
      const [oldest] = limits.keys();
      if (limits.size > MAX_KNOWN && oldest !== undefined) limits.delete(oldest);
      return slow;
    },
  };
}

const INITIAL_CONCURRENCY = 4;

/** A slower receiver takes more than its share of the workers' time. */
const SLOW_MS = 2_000;

/** Their names are parameters of each claim. */
const MAX_KNOWN = 200;

export type Concurrency = {
  /** The limit of a receiver that is not known. */
  initial: number;
  of(receiver: string): number;
  /** Whether its last answer was quick. */
  isQuick(receiver: string): boolean;
  known(): Receiver[];
  /** Adjusts the limit to how long an answer, or the lack of one, took. True if that was slow. */
  adjust(receiver: Receiver, tookMs: number): boolean;
};

type Receiver = { share: string; receiver: string };
