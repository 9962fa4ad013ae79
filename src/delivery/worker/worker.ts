import type { Database } from '../../store/database/database.ts';
import { type Claim, claimDue, claimInTurn } from '../../store/delivery-queue.ts';
import type { DeliveryResult } from '../../store/delivery-results.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Attempted } from './attempt.ts';
import { createLanes } from './receiver-queues.ts';
import { createWatermark } from './watermark.ts';
import { createPump } from './worker-loop.ts';

/**
 * Makes the loop that claims due deliveries, has them tried, and has the results written down: as many
 * at once as there are workers, fairly over receivers.
 *
 * `wake` looks for more at once. Between wakes it looks by itself as places become free.
 */
export function createLoop(options: LoopOptions): Loop {
  const { database, workers, attempt, settle, onGone, signal, log, now } = options;
  const watermark = createWatermark(now);
  const pump = createPump('claim', claim, log);
  const lanes = createLanes({
    workers,
    send,
    giveBack: ({ id, lease }) => settle({ id, lease, status: 'pending', delayMs: 0 }),
    onRoom: () => hungry && pump.wake(),
  });
  let turnAfter = '';
  /** Whether more was due than could be claimed. */
  let hungry = false;

  async function claim(): Promise<boolean> {
    const limit = Math.min(lanes.room(), MAX_CLAIM);
    if (limit <= 0) return false;
    const since = new Date(watermark.since());
    const claimOptions = { since, perReceiver: lanes.perReceiver, limit };

    const due = await claimDue(database, { ...claimOptions, busy: lanes.busy(), page: PAGE });
    watermark.advance(due.resumeAt.getTime());
    lanes.add(due.claims);
    hungry = due.pageFull;
    if (!due.pageFull || due.claims.length > 0) return false;

    // The page is full of receivers that have enough under way: ask the others by their names.
    const turn = await claimInTurn(database, { ...claimOptions, busy: lanes.busy(), after: turnAfter });
    turnAfter = turn.last;
    lanes.add(turn.claims);
    return turnAfter !== '';
  }

  async function send(claimed: Claim, sent: (tookMs: number) => void): Promise<void> {
    const startedAt = performance.now();
    const { result, gone } = await attempt(claimed, signal);
    sent(performance.now() - startedAt);
    await settle(result);
    if (gone) await onGone(claimed.receiver);
    if (result.delayMs !== undefined && result.delayMs < SOON_MS) setTimeout(pump.wake, result.delayMs);
  }

  return {
    wake: pump.wake,
    async stop() {
      await pump.stop();
      lanes.giveBackWaiting();
      await lanes.untilEmpty();
    },
  };
}

/** What one claim reads and locks: some milliseconds. */
const MAX_CLAIM = 250;

/** How many due deliveries are looked at to find some for receivers that may have more. */
const PAGE = 500;

/** What is due later than this is found by whoever wakes the loop every second. */
const SOON_MS = 1_000;

export type Loop = {
  wake: () => void;
  /** Claims no more, gives back what was not begun, and waits for what is under way. */
  stop(): Promise<void>;
};

export type LoopOptions = {
  database: Database;
  workers: number;
  /** Must not throw. */
  attempt: (claim: Claim, signal: AbortSignal) => Promise<Attempted>;
  /** Resolves when the result is written down. */
  settle: (result: DeliveryResult) => Promise<void>;
  /** Called when a webhook's receiver wants no more. Must not throw. */
  onGone: (webhookId: string) => Promise<void>;
  /** Ends the attempts under way; their deliveries are given back. */
  signal: AbortSignal;
  now: () => number;
  log: Log;
};
