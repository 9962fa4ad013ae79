import { setTimeout as sleep } from 'node:timers/promises';
import { isDataError, LONGEST_STATEMENT_MS, splitBatch } from '../../store/database/faults.ts';
import { type DeliveryResult, type HealthChange, settleDeliveries } from '../../store/deliveries/settle.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Makes what stores results in batches: while one batch is being written the next one accumulates.
 *
 * If the database is away for long, or still is when `signal` is aborted, results are given up, and their
 * deliveries are made again when their leases end.
 */
export function createSettler(options: SettlerOptions): (result: DeliveryResult) => Promise<void> {
  const { onChanges, metrics } = options;
  let waiting: Waiting[] = [];
  let writing = false;

  const write = async () => {
    while (waiting.length > 0) {
      // During one turn of the event loop more results come in.
      await new Promise(setImmediate);
      const batch = waiting.slice(0, BATCH);
      waiting = waiting.slice(BATCH);
      metrics?.onBatch('results', batch.length);
      const changes = await settle(
        options,
        batch.map(({ result }) => result),
      );
      for (const { done } of batch) done();
      if (changes.length > 0) onChanges(changes);
    }
    writing = false;
  };

  return (result) =>
    new Promise((done) => {
      waiting.push({ result, done });
      if (writing) return;
      writing = true;
      void write();
    });
}

const BATCH = 500;

/** The last try to store a batch begins within this. */
const TRIES_MS = 5_000;
const PAUSE_MS = 1_000;

export const LONGEST_SETTLING_MS = TRIES_MS + LONGEST_STATEMENT_MS;

/** A result that the database refuses is stored without what its receiver said, if at all. */
function settle(options: SettlerOptions, results: DeliveryResult[]): Promise<HealthChange[]> {
  return splitBatch(
    results,
    (part) => store(options, part),
    (result, error) => {
      const { attempt } = result;
      if (attempt?.responseBody !== undefined) {
        return settle(options, [{ ...result, attempt: { ...attempt, responseBody: undefined } }]);
      }
      options.log.error({ err: error, delivery: result.id }, 'Could not store the result of a delivery.');
      return [];
    },
  );
}

/** Throws if the database refuses the data; else tries again for a while, and then gives up. */
async function store(
  { database, signal, log }: SettlerOptions,
  results: DeliveryResult[],
): Promise<HealthChange[]> {
  for (const giveUpAt = performance.now() + TRIES_MS; ; ) {
    try {
      return await settleDeliveries(database, results);
    } catch (error) {
      if (isDataError(error)) throw error;
      if (performance.now() + PAUSE_MS > giveUpAt || signal.aborted) {
        log.error(
          { err: error, count: results.length },
          'Could not store the results of deliveries; they are made again when their leases end.',
        );
        return [];
      }
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

type Waiting = { result: DeliveryResult; done: () => void };

type SettlerOptions = Pick<DeliveryOptions, 'database' | 'log'> & {
  /** Aborted when a stop waits no longer. */
  signal: AbortSignal;
  metrics?: Pick<Metrics, 'onBatch'> | undefined;
  /** Must not throw, nor wait: all results wait for it. */
  onChanges: (changes: HealthChange[]) => void;
};
