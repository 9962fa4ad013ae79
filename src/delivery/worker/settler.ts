import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../store/database/database.ts';
import { type DeliveryResult, type FailingWebhook, settleDeliveries } from '../../store/delivery-results.ts';
import type { Log } from '../../telemetry/log.ts';

/**
 * Makes what writes results down in groups: while one group is being written the next ones gather.
 *
 * If the database is away for long, or still is when `signal` is aborted, results are given up, and their
 * deliveries are made again when their leases end.
 */
export function createSettler(options: SettlerOptions): (result: DeliveryResult) => Promise<void> {
  const { onFailing } = options;
  let waiting: Waiting[] = [];
  let writing = false;

  const write = async () => {
    while (waiting.length > 0) {
      // One turn of the event loop, in which more results come in.
      await new Promise(setImmediate);
      const group = waiting.slice(0, GROUP);
      waiting = waiting.slice(GROUP);
      const failing = await settle(
        options,
        group.map(({ result }) => result),
      );
      for (const { done } of group) done();
      if (failing.length > 0) await onFailing(failing);
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

const GROUP = 500;

/** With the pauses, and the database's own patience, half a lease. */
const TRIES = 3;
const PAUSE_MS = 1_000;

async function settle(
  { database, signal, log }: SettlerOptions,
  results: DeliveryResult[],
): Promise<FailingWebhook[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await settleDeliveries(database, results);
    } catch (error) {
      if (tries === TRIES || signal.aborted) {
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

type SettlerOptions = {
  database: Database;
  /** Aborted when a stop waits no longer. */
  signal: AbortSignal;
  log: Log;
  /** Must not throw. */
  onFailing: (failing: FailingWebhook[]) => Promise<void>;
};
