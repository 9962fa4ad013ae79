import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits for the next day (UTC) if this one ends before a test can have run to its end: so a test that counts by day
 * sees only one. To be called before each such test.
 */
export async function awaitWholeDay(): Promise<void> {
  while (leftOfDay() < TEST_MS) await sleep(leftOfDay());
}

function leftOfDay(): number {
  return DAY_MS - (Date.now() % DAY_MS);
}

/** The time-out of a test; that of a hook is longer. */
const TEST_MS = 90_000;

const DAY_MS = 86_400_000;
