import type { Database } from '../../store/database/database.ts';
import type { Claim } from '../../store/deliveries/claim.ts';
import { claimDue, claimInTurn, type Turn } from '../../store/deliveries/delivery-queue.ts';
import type { DeliveryResult } from '../../store/deliveries/delivery-results.ts';
import { type LeasePlaces, NO_PLACES } from '../../store/deliveries/webhook-deliveries.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createAdaptiveWorkers } from './adaptive-workers.ts';
import type { Attempted } from './attempt.ts';
import { createReceiverQueues } from './receiver-queues.ts';
import { createWatermark } from './watermark.ts';
import { createWorkerLoop } from './worker-loop.ts';

/**
 * Makes the worker that claims due deliveries, attempts them and has the results stored: as many at once as
 * `workers` says, fairly over shares and receivers.
 *
 * `wake` makes it claim at once. Between wakes it claims by itself as capacity becomes free. What this process
 * stored under a lease of its own it gets by `attempt`, without asking the database.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { database, workers, times, attempt, settle, onGone, signal, now, metrics } = options;
  const watermark = createWatermark(now);
  const loop = createWorkerLoop('claim', claim, options);
  const adaptive = createAdaptiveWorkers(workers);
  const queues = createReceiverQueues({
    maxWorkers: workers,
    workers: () => adaptive.current(),
    send,
    release: ({ id, lease }) => settle({ id, lease, status: 'pending', delayMs: 0 }),
    // A receiver that fails may have its other deliveries postponed just now: what is left of a page can wait for that.
    onCapacity: (taken) => {
      if (!isPageLeft && !(moreDue && taken)) return;
      if (isClaiming) isFreed = true;
      else loop.wake();
    },
  });
  let turnAfter: Turn | null = null;
  /** When deliveries behind a full page may be claimed next by the names of their receivers. */
  let nextTurnAt = Number.NEGATIVE_INFINITY;
  /** Whether more was due than could be claimed. */
  let moreDue = false;
  /** Whether that was as much as is looked at, or claimed, at once. */
  let isPageLeft = false;
  /** While a claim is under way, whether capacity has become free, which it may use up. */
  let isClaiming = false;
  let isFreed = false;
  let stopped = false;
  /** Until then nothing is claimed, since nearly all that is due is for receivers at their limits. */
  let blockedUntil = 0;
  let wakeAgain: NodeJS.Timeout | undefined;

  async function claim(): Promise<boolean> {
    const waitMs = blockedUntil - performance.now();
    if (waitMs > 0) {
      wakeAgain ??= setTimeout(() => {
        wakeAgain = undefined;
        loop.wake();
      }, waitMs);
      return false;
    }
    const places = queues.places();
    const limit = Math.min(places.total, MAX_CLAIM);
    if (limit <= 0) {
      isPageLeft = true;
      return false;
    }
    const since = new Date(watermark.since());

    isClaiming = true;
    isFreed = false;
    const due = await adaptive.measure(() => claimDue(database, { since, limit, places, page: PAGE }));
    isClaiming = false;
    const isLarge = due.claims.length >= limit / 2;
    if (isFreed && !isLarge) loop.wake();
    watermark.advance(due.resumeAt.getTime());
    if (due.claims.length > 0) metrics?.onBatch('claims', due.claims.length);
    queues.add(due.claims);
    moreDue = due.more;
    isPageLeft = due.pageFull || (due.more && due.claims.length >= limit);
    if (!due.pageFull || (isLarge && performance.now() < nextTurnAt)) return false;

    // What is behind the page waits for all of it, and for ever if it is full of receivers that are at their limits:
    // claim for the others by their names.
    const turnAt = performance.now();
    const next = { since, limit, places: queues.places(), after: turnAfter };
    // How long it takes says how much it walks over, not how busy the database is.
    const turn = await claimInTurn(database, next);
    const tookMs = performance.now() - turnAt;
    nextTurnAt = turnAt + Math.max(TURN_MS, TURN_COST * tookMs);
    turnAfter = turn.last;
    if (turn.claims.length > 0) metrics?.onBatch('claims', turn.claims.length);
    queues.add(turn.claims);
    if (turnAfter !== null) return true;
    if (due.claims.length + turn.claims.length < FEW) blockedUntil = performance.now() + BLOCKED_MS;
    return false;
  }

  async function send(claimed: Claim, onSent: (tookMs: number) => void): Promise<boolean> {
    const startedAt = performance.now();
    const { result, gone } = await attempt(claimed, signal);
    onSent(isUnanswered(result) ? Number.POSITIVE_INFINITY : performance.now() - startedAt);
    await adaptive.measure(() => settle(result));
    if (gone) await onGone(claimed.receiver);
    if (result.delayMs !== undefined && result.delayMs < POLLED_MS) setTimeout(loop.wake, result.delayMs);
    return result.status === 'delivered';
  }

  return {
    wake: loop.wake,
    places: () => ({ ...(stopped || times.delaySeconds > 0 ? NO_PLACES : queues.places()), ...times }),
    attempt(claims) {
      queues.add(claims);
      if (stopped) queues.releaseWaiting();
    },
    async stop() {
      stopped = true;
      clearTimeout(wakeAgain);
      await loop.stop();
      queues.releaseWaiting();
      await queues.whenEmpty();
      adaptive.stop();
    },
  };
}

/** What one claim reads and locks: some milliseconds of work. */
const MAX_CLAIM = 250;

/** How many due deliveries are read to find some for receivers that are not at their limit. */
const PAGE = 500;

/** How long deliveries behind a full page may wait for being claimed by the names of their receivers. */
const TURN_MS = 250;

/**
 * Beside full pages, claims by names take at most one part in so many of the time: they walk over finished deliveries
 * that an old snapshot holds, 135 ms for 150,000.
 */
const TURN_COST = 10;

/** Reading a page for this few costs more than it brings. */
const FEW = 8;
const BLOCKED_MS = 100;

/** Attempted without an answer, such as a connection that was refused. */
function isUnanswered({ status, attempt }: DeliveryResult): boolean {
  return status !== 'delivered' && attempt !== undefined && attempt.responseStatus === undefined;
}

/** What is due later than this is found by the poller. */
const POLLED_MS = 1_000;

export type Worker = {
  wake: () => void;
  /** What this process may lease of the deliveries that it stores. */
  places(): LeasePlaces;
  /** Attempts what was leased so. */
  attempt(claims: Claim[]): void;
  /** Claims no more, releases what was not begun, and waits for what is under way. */
  stop(): Promise<void>;
};

export type WorkerOptions = {
  database: Database;
  workers: number;
  /** Of the retry schedule. */
  times: Pick<LeasePlaces, 'delaySeconds' | 'totalSeconds'>;
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
  metrics?: Pick<Metrics, 'onBatch' | 'onWork'> | undefined;
};
