import type { Database } from '../store/database.ts';
import { type Claim, claimDue, claimInTurn } from '../store/delivery-queue.ts';
import type { DeliveryResult } from '../store/delivery-results.ts';
import type { Attempted } from './attempt.ts';
import { createInFlight } from './in-flight.ts';
import type { Log } from './options.ts';
import { createPump } from './pump.ts';
import { createWatermark } from './watermark.ts';

/**
 * Makes the loop that claims due deliveries, has them tried, and has the results written down: as many
 * at once as there are workers, fairly over receivers.
 *
 * `wake` looks for more at once. Between wakes it looks by itself as places become free.
 */
export function createLoop(options: LoopOptions): Loop {
  const { database, workers, attempt, settle, onGone, log, now } = options;
  const inFlight = createInFlight(workers);
  const watermark = createWatermark(now);
  const underWay = new Set<Promise<void>>();
  const abort = new AbortController();
  let turnAfter = '';
  let hungry = false;

  const pump = createPump('claim', claim, log);

  async function claim(): Promise<boolean> {
    const limit = Math.min(inFlight.free(), MAX_CLAIM);
    if (limit <= 0) return false;
    const since = new Date(watermark.since());
    const claimOptions = { since, perReceiver: inFlight.perReceiver, limit };

    const due = await claimDue(database, { ...claimOptions, busy: inFlight.busy(), page: PAGE });
    watermark.advance(due.resumeAt.getTime());
    due.claims.forEach(begin);
    hungry = due.pageFull;
    if (!due.pageFull || due.claims.length === limit) return due.pageFull && inFlight.free() > 0;

    // The page is full of receivers that have enough under way: ask the others by their names.
    const left = { ...claimOptions, limit: limit - due.claims.length, busy: inFlight.busy() };
    const turn = await claimInTurn(database, { ...left, after: turnAfter });
    turnAfter = turn.last;
    turn.claims.forEach(begin);
    return inFlight.free() > 0 && (turn.claims.length > 0 || turnAfter !== '');
  }

  function begin(claimed: Claim): void {
    inFlight.begin(claimed.receiver);
    const work = deliver(claimed).finally(() => underWay.delete(work));
    underWay.add(work);
  }

  async function deliver(claimed: Claim): Promise<void> {
    const startedAt = performance.now();
    const { result, gone } = await attempt(claimed, abort.signal);
    const tookMs = performance.now() - startedAt;
    await settle(result);
    inFlight.end(claimed.receiver, tookMs);
    if (gone) await onGone(claimed.receiver);
    if (result.delayMs !== undefined && result.delayMs < SOON_MS) setTimeout(pump.wake, result.delayMs);
    if (hungry && inFlight.free() >= Math.min(workers / 4, MAX_CLAIM)) pump.wake();
  }

  return {
    wake: () => pump.wake(),
    async stop(graceMs) {
      await pump.stop();
      const deadline = setTimeout(() => abort.abort(), graceMs);
      while (underWay.size > 0) await Promise.all(underWay);
      clearTimeout(deadline);
    },
  };
}

/** Bodies of 256 KiB each are held in memory for all of these. */
const MAX_CLAIM = 100;

/** How many due deliveries are looked at to find some for receivers that have places free. */
const PAGE = 500;

/** What is due later than this is found by whoever wakes the loop every second. */
const SOON_MS = 1_000;

export type Loop = {
  wake(): void;
  /** Claims no more, finishes what is under way, and after `graceMs` gives back the rest. */
  stop(graceMs: number): Promise<void>;
};

export type LoopOptions = {
  database: Database;
  workers: number;
  /** Must not throw. */
  attempt(claim: Claim, signal: AbortSignal): Promise<Attempted>;
  /** Resolves when the result is written down. */
  settle(result: DeliveryResult): Promise<void>;
  /** Called when a webhook's receiver wants no more. Must not throw. */
  onGone(webhookId: string): Promise<void>;
  now(): number;
  log: Log;
};
