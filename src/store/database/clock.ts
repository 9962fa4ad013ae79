import type { Log } from '../../telemetry/log.ts';
import type { Database } from './database.ts';

/**
 * The time of the database, in milliseconds since 1970: what `read`, the clock of this machine, says at first, and from
 * `correct` on the database's, so that all processes on one database agree, however wrong their machines are. In
 * between it goes on with `elapsed`, which nobody can set.
 */
export function machineClock(read = Date.now, elapsed = () => performance.now()): MachineClock {
  let beganAt = read() - elapsed();
  let aheadMs = 0;

  const clock: MachineClock = Object.assign(
    () => {
      const now = Math.floor(beganAt + elapsed());
      const differsMs = read() - now;
      if (Math.abs(differsMs - aheadMs) > STEP_MS) {
        aheadMs = differsMs;
        clock.onStep();
      }
      return now;
    },
    {
      onStep: () => {},
      async correct(database: ClockOfDatabase): Promise<number> {
        const begin = elapsed();
        const there = (await database.now()).getTime();
        const end = elapsed();
        const measured = there - (begin + end) / 2;
        // It was read at some time in between, so that a smaller difference says nothing.
        const error = (end - begin) / 2 + 1;
        if (Math.abs(measured - beganAt) > error) beganAt = measured;
        aheadMs = Math.round(read() - beganAt - end);
        return aheadMs;
      },
    },
  );
  return clock;
}

/**
 * Corrects a clock at once, each minute, and when the machine's is set or goes on after a pause, until it is disposed
 * of. Differences that people should mend are logged.
 */
export async function followDatabase(
  clock: MachineClock,
  { database, log }: { database: ClockOfDatabase; log: Log },
): Promise<Disposable> {
  let loggedMs = 0;
  const correct = async () => {
    const aheadMs = await clock.correct(database);
    if (Math.abs(aheadMs - loggedMs) < NOTABLE_MS) return;
    loggedMs = aheadMs;
    log.warn(
      { aheadSeconds: aheadMs / 1000 },
      "This machine's clock differs from the database's, which is used. Let both follow a time server.",
    );
  };
  await correct();
  const correctAgain = () => {
    correct().catch((error: unknown) => {
      log.warn({ err: error }, "Could not read the database's clock; it is read again in a minute.");
    });
  };
  clock.onStep = correctAgain;
  const timer = setInterval(correctAgain, EVERY_MS).unref();
  return {
    [Symbol.dispose]() {
      clock.onStep = () => {};
      clearInterval(timer);
    },
  };
}

const EVERY_MS = 60_000;
const NOTABLE_MS = 2_000;
/** More than time servers correct little by little, and than a busy machine takes to read both clocks. */
const STEP_MS = 1_000;

export type MachineClock = (() => number) & {
  /** Measures the time of the database, goes on from it, and returns by how many milliseconds the machine is ahead. */
  correct(database: ClockOfDatabase): Promise<number>;
  /** Called once when the machine's clock no longer goes as `elapsed` does. */
  onStep: () => void;
};

type ClockOfDatabase = Pick<Database, 'now'>;
