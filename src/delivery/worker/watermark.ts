/**
 * Remembers up to which instant everything has been taken, so that a look for more can skip the dead
 * rows before it. While somebody's old snapshot keeps those from being cleaned up, a look from the
 * beginning would get slower with each delivery made.
 *
 * Rows can be committed a little later than the instant they carry, and deliveries that a process took
 * come back where they were if it dies. So every second one look goes back further, and every ten seconds
 * to the beginning of time: nothing is skipped for longer. What was looked at long after its instant, as in
 * a backlog, is not looked at again: no row comes that late.
 */
export function createWatermark(now: () => number): Watermark {
  let position = 0;
  /** Before this nothing can be committed any more. */
  let complete = 0;
  let lookedBackAt = 0;
  let lookedAtAllAt = 0;

  return {
    since() {
      const at = now();
      if (at - lookedAtAllAt >= LOOK_AT_ALL_MS) {
        lookedAtAllAt = at;
        lookedBackAt = at;
        return 0;
      }
      if (at - lookedBackAt >= LOOK_BACK_MS) {
        lookedBackAt = at;
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

const LOOK_BACK_MS = 1_000;
const LOOK_AT_ALL_MS = 10_000;

/** What a group commit takes; at full speed some thousand rows. */
const NEAR_MS = 100;

/** Clocks of several processes differ by less. */
const FAR_MS = 5_000;

/** No commit takes so long, whatever the clocks say. */
const LATE_MS = 2 * FAR_MS;

export type Watermark = {
  /** Where the next look begins, in milliseconds since 1970. */
  since(): number;
  /** Everything before this has been taken. */
  advance(to: number): void;
};
