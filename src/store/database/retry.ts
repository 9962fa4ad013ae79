import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseUnavailable, passingFault } from './faults.ts';

/**
 * Runs database work again while it fails in a passing way, at most three times within ten seconds.
 *
 * Work whose outcome is unknown runs again only if `isRepeatable` says so after the failure: reads always
 * are, and a transaction is until it commits.
 *
 * @throws DatabaseUnavailable if the fault does not pass; any lasting error as it is.
 */
export async function retrying<T>(work: () => Promise<T>, isRepeatable: () => boolean): Promise<T> {
  const giveUpAt = performance.now() + RETRY_WINDOW_MS;
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof DatabaseUnavailable) throw error;
      const left = passingFault(error);
      if (left === undefined) throw error;

      const delay = FIRST_DELAY_MS * 4 ** (failures - 1) * (0.5 + Math.random());
      const mayRepeat = left === 'nothing' || isRepeatable();
      if (!mayRepeat || failures > MAX_RETRIES || performance.now() + delay > giveUpAt) {
        throw new DatabaseUnavailable(error);
      }
      await sleep(delay);
    }
  }
}

const MAX_RETRIES = 3;
const RETRY_WINDOW_MS = 10_000;
/** Long enough for the other side of a deadlock to finish; the third retry comes after about a second. */
const FIRST_DELAY_MS = 50;
