import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseUnavailable, isDataError, transientFault } from './faults.ts';

/**
 * Runs database work again while it fails with a transient fault, at most three times within ten seconds.
 *
 * Work whose outcome is unknown runs again only if `isRepeatable` says so after the failure: a read always
 * is, a transaction until its commit.
 *
 * @throws DatabaseUnavailable if the fault persists; any other error as it is.
 */
export async function withRetries<T>(work: () => Promise<T>, isRepeatable: () => boolean): Promise<T> {
  const giveUpAt = performance.now() + RETRY_WINDOW_MS;
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof DatabaseUnavailable) throw error;
      const left = transientFault(error);
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

/** The last try begins within this. */
export const RETRY_WINDOW_MS = 10_000;

/** A server that can't be connected to within this is treated as away. */
export const CONNECT_TIMEOUT_MS = 5_000;

/** When the server itself is silent: a little more than a statement may take. */
export const ANSWER_TIMEOUT_MS = 12_000;

/** The longest from the first try of a statement to the end of the last one. */
export const LONGEST_STATEMENT_MS = RETRY_WINDOW_MS + CONNECT_TIMEOUT_MS + ANSWER_TIMEOUT_MS;

/**
 * How often an insert may meet a row that is deleted before it is found. More in a row mean a bug: give up
 * with `DatabaseUnavailable`.
 */
export const MAX_CONFLICTS = 3;

/** Long enough for the other side of a deadlock to finish; the third retry comes after about a second. */
const FIRST_DELAY_MS = 50;

/**
 * Works on a batch whose items succeed or fail together. One that fails for an item is split until that item is by
 * itself, and `alone` says what becomes of it. Returns what came of all, in the order of the items.
 *
 * `isOfItem` tells whether an error is an item's, by default one of its data; any other one is thrown.
 */
export async function splitBatch<Item, Result>(
  batch: Item[],
  work: (part: Item[]) => Promise<Result[]>,
  alone: (item: Item, error: unknown) => Result[] | Promise<Result[]>,
  isOfItem: (error: unknown) => boolean = isDataError,
): Promise<Result[]> {
  try {
    return await work(batch);
  } catch (error) {
    const [item] = batch;
    if (item === undefined || !isOfItem(error)) throw error;
    if (batch.length === 1) return alone(item, error);
    const middle = Math.ceil(batch.length / 2);
    const first = await splitBatch(batch.slice(0, middle), work, alone, isOfItem);
    return [...first, ...(await splitBatch(batch.slice(middle), work, alone, isOfItem))];
  }
}
