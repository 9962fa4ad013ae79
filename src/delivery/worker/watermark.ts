/**
 * Remembers up to which time everything has been taken, so that a query for more can skip the dead rows
 * before it. While an old snapshot elsewhere keeps those from being cleaned up, a query from the beginning
 * would get slower with each delivery made.
 *
 * Rows can be committed a little later than the time they carry, and deliveries that a process had claimed
 * become due again where they were if it dies. So one query each second goes back further, and one each ten
 * seconds has no lower bound: nothing is skipped for longer. Times that were passed long after they had
 * come, as in a backlog, are not read again: no row is committed that late. A clock that steps back begins anew.
 */
export function createWatermark(now: () => number): Watermark {
  let position = 0;
  /** No row before this can be committed any more. */
  let complete = 0;
  let farAt = 0;
  let unboundedAt = 0;
  let lastAt = 0;

  return {
    since() {
      const at = now();
      // The clock was set back: rows written since then have earlier times than those that were taken.
      if (at < lastAt) {
        complete = 0;
        unboundedAt = Number.NEGATIVE_INFINITY;
      }
      lastAt = at;
      if (at - unboundedAt >= UNBOUNDED_EVERY_MS) {
        unboundedAt = at;
        farAt = at;
        return 0;
      }
      if (at - farAt >= FAR_EVERY_MS) {
        farAt = at;
        return Math.max(complete, position - FAR_MS);
      }
      return Math.max(complete, position - NEAR_MS);
    },
    advance(to) {
      position = to;
      complete = now() - to >= LATE_MS ? to : Math.min(complete, to);
    },
  };
}

const FAR_EVERY_MS = 1_000;
const UNBOUNDED_EVERY_MS = 10_000;

/** What a group commit takes; at full speed some thousand rows. */
const NEAR_MS = 100;

/** The clocks of several processes differ by less. */
const FAR_MS = 5_000;

/** No commit takes so long, even with clocks that differ. */
const LATE_MS = 2 * FAR_MS;

export type Watermark = {
  /** The lower bound of the next query, in milliseconds since 1970. */
  since(): number;
  /** Everything before this has been taken. */
  advance(to: number): void;
};
