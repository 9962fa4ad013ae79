import type { Transaction, Transactions } from './queries.ts';
import { restAfter } from './serial.ts';

/**
 * Makes what does long work of a project, such as an erasure, in slices: transactions that go through as many rows as
 * take about as long as `SLICE_MS` says, and never more than `mostRows`. In a process one slice runs at a time, and
 * all such work takes turns, also with what else takes long of the same project. While others use the service a rest
 * follows, for everybody else.
 */
export function createSlices(database: Transactions, mostRows: number): Slices {
  let rows = Math.min(FIRST_ROWS, mostRows);
  /** The last one, from when its transaction had begun: what it waited for took nobody anything. */
  let tookMs = 0;

  async function run<T>(work: (tx: Transaction, rows: number) => Promise<T>): Promise<T> {
    try {
      return await database.transaction(async (tx) => {
        const begunAt = performance.now();
        try {
          await tx.execute(IN_ORDER);
          return await work(tx, rows);
        } finally {
          tookMs = performance.now() - begunAt;
        }
      });
    } finally {
      const fitting = Math.min((rows * SLICE_MS) / tookMs, 2 * rows);
      rows = Math.max(1, Math.min(mostRows, Math.max(LEAST_ROWS, Math.round(fitting))));
    }
  }

  const restOf = () => (database.slots.isUsedByOthers() ? restAfter(tookMs) : 0);
  return (work) => database.slots.runSlice(() => run(work), restOf);
}

/**
 * A slice takes its rows in the order of an index. A planner that has no statistics of a table, as on the embedded
 * database, or old ones of a table that has grown, would collect all that are left and sort them, for each slice.
 */
const IN_ORDER = 'set local enable_bitmapscan = off';

/**
 * Everybody waits for a slice of the embedded database. A server writes what a slice has changed in one go, for which
 * others' commits wait. With 10 ms the p99 of others' submissions was a quarter longer on the embedded database
 * (`npm run bench -- neighbours`), with 50 ms twice as long on a server.
 */
const SLICE_MS = 5;

/** Until it is known how long they take. */
const FIRST_ROWS = 100;

/** For fewer, a transaction costs more than its rows. */
const LEAST_ROWS = 50;

/** Runs the next slice, which goes through up to `rows` rows. */
export type Slices = <T>(work: (tx: Transaction, rows: number) => Promise<T>) => Promise<T>;
