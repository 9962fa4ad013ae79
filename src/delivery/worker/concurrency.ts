/**
 * Keeps how many deliveries each receiver may have claimed at a time: a few at first, one more with each
 * quick answer up to `most`, and only one after a slow answer or none. So any number of deliveries for
 * receivers that are dead or unknown leaves room for the others'.
 */
export function createCredits(most: number): Credits {
  const atFirst = Math.min(most, CREDIT_AT_FIRST);
  /** The receivers heard of last at the end. */
  const credits = new Map<string, number>();
  return {
    atFirst,
    of: (receiver) => credits.get(receiver) ?? atFirst,
    known: () => credits.keys(),
    earn(receiver, tookMs) {
      const slow = tookMs >= SLOW_MS;
      const before = credits.get(receiver) ?? atFirst;
      credits.delete(receiver);
      credits.set(receiver, slow ? 1 : Math.min(most, before + 1));
      const [oldest] = credits.keys();
      if (credits.size > MAX_KNOWN && oldest !== undefined) credits.delete(oldest);
      return slow;
    },
  };
}

const CREDIT_AT_FIRST = 4;

/** A receiver that takes longer holds its place longer than is fair to the others. */
const SLOW_MS = 2_000;

/** Their names go into each claim. */
const MAX_KNOWN = 200;

export type Credits = {
  /** The credit of a receiver that is not known. */
  atFirst: number;
  of(receiver: string): number;
  known(): Iterable<string>;
  /** Counts an answer, or the lack of one, after so long. True if it was slow. */
  earn(receiver: string, tookMs: number): boolean;
};
