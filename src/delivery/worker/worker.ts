import type { Database } from '../../store/database/database.ts';
import { type Claim, claimDue, claimInTurn } from '../../store/delivery-queue.ts';
import type { DeliveryResult } from '../../store/delivery-results.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Attempted } from './attempt.ts';
import { createReceiverQueues } from './receiver-queues.ts';
import { createWatermark } from './watermark.ts';
import { createWorkerLoop } from './worker-loop.ts';

/**
 * Makes the worker that claims due deliveries, attempts them and has the results stored: as many at once as
 * `workers` says, fairly over receivers.
 *
 * `wake` makes it claim at once. Between wakes it claims by itself as capacity becomes free.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { database, workers, attempt, settle, onGone, signal, log, now } = options;
  const watermark = createWatermark(now);
  const loop = createWorkerLoop('claim', claim, log);
  const queues = createReceiverQueues({
    workers,
    send,
    release: ({ id, lease }) => settle({ id, lease, status: 'pending', delayMs: 0 }),
    onCapacity: () => moreDue && loop.wake(),
  });
  let turnAfter = '';
  /** Whether more was due than could be claimed. */
  let moreDue = false;

  async function claim(): Promise<boolean> {
    const limit = Math.min(queues.capacity(), MAX_CLAIM);
    if (limit <= 0) return false;
    const since = new Date(watermark.since());
    const claimOptions = { since, perReceiver: queues.perReceiver, limit };

    const due = await claimDue(database, { ...claimOptions, busy: queues.busy(), page: PAGE });
    watermark.advance(due.resumeAt.getTime());
    queues.add(due.claims);
    moreDue = due.pageFull;
    if (!due.pageFull || due.claims.length > 0) return false;

    // The page is full of receivers that are at their limit: claim for the others by their names.
    const turn = await claimInTurn(database, { ...claimOptions, busy: queues.busy(), after: turnAfter });
    turnAfter = turn.last;
    queues.add(turn.claims);
    return turnAfter !== '';
  }

  async function send(claimed: Claim, onSent: (tookMs: number) => void): Promise<void> {
    const startedAt = performance.now();
    const { result, gone } = await attempt(claimed, signal);
    onSent(performance.now() - startedAt);
    await settle(result);
    if (gone) await onGone(claimed.receiver);
    if (result.delayMs !== undefined && result.delayMs < POLLED_MS) setTimeout(loop.wake, result.delayMs);
  }

  return {
    wake: loop.wake,
    async stop() {
      await loop.stop();
      queues.releaseWaiting();
      await queues.whenEmpty();
    },
  };
}

/** What one claim reads and locks: some milliseconds of work. */
const MAX_CLAIM = 250;

/** How many due deliveries are read to find some for receivers that are not at their limit. */
const PAGE = 500;

/** What is due later than this is found by the poller. */
const POLLED_MS = 1_000;

export type Worker = {
  wake: () => void;
  /** Claims no more, releases what was not begun, and waits for what is under way. */
  stop(): Promise<void>;
};

export type WorkerOptions = {
  database: Database;
  workers: number;
  /** Must not throw. */
  attempt: (claim: Claim, signal: AbortSignal) => Promise<Attempted>;
  /** Resolves when the result is stored or given up. Must not throw. */
  settle: (result: DeliveryResult) => Promise<void>;
  /** Called when a webhook's receiver wants no more. Must not throw. */
  onGone: (webhookId: string) => Promise<void>;
  /** Ends the attempts under way; their deliveries are released. */
  signal: AbortSignal;
  now: () => number;
  log: Log;
};
