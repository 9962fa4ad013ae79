import type { Database } from '../../store/database/database.ts';
import { claimByReceiver, claimDue, type ReceiverName, renewLeases } from '../../store/deliveries/claim.ts';
import type { Claim } from '../../store/deliveries/claimed.ts';
import { type Capacity, NO_CAPACITY } from '../../store/deliveries/fairness.ts';
import type { DeliveryResult } from '../../store/deliveries/settle.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Attempted } from './attempt.ts';
import { createCapacity, type ProcessCapacity } from './capacity.ts';
import { createWatermark } from './watermark.ts';
import { createWorkerLoop } from './worker-loop.ts';

/**
 * Makes the worker that claims due deliveries, attempts them and has the results stored: as many at once as
 * `concurrency` says, fairly over tenants and receivers.
 *
 * `wake` makes it claim at once. Between wakes it claims by itself as capacity becomes free. What this process
 * stored under a lease of its own it gets by `attempt`, without asking the database.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { times, attempt, settle, onGone, signal } = options;
  const capacity = createCapacity({
    ...options,
    send,
    release: ({ id, lease }) => settle({ id, lease, status: 'pending', delayMs: 0 }),
    onFreed: (taken) => loop.onFreed(taken),
  });
  const loop = createClaimLoop({ ...options, capacity });
  /** Webhooks have answered, or been given up, long before their leases end. */
  const mails = new Map<string, Claim>();
  const renewal = setInterval(() => {
    if (mails.size > 0) renewing ??= renew();
  }, options.renewEveryMs ?? RENEW_EVERY_MS).unref();
  let renewing: Promise<void> | undefined;
  let stopped = false;

  /** Renews the leases of emails under way, so that no other process is given one that takes long. */
  async function renew(): Promise<void> {
    try {
      for (const { id, lease } of await renewLeases(options.database, [...mails.values()]))
        Object.assign(mails.get(id) ?? {}, { lease });
    } catch (error) {
      options.log.warn({ err: error }, 'Could not renew the leases of emails under way.');
    }
    renewing = undefined;
  }

  async function send(claimed: Claim, onAnswer: (tookMs: number) => void): Promise<boolean> {
    const startedAt = performance.now();
    const isMail = claimed.content.channel === 'mail';
    if (isMail) mails.set(claimed.id, claimed);
    const { result, outcome } = await attempt(claimed, signal);
    onAnswer(outcome?.stage === 'sent' ? Number.POSITIVE_INFINITY : performance.now() - startedAt);
    if (isMail) await renewing;
    mails.delete(claimed.id);
    await settle({ ...result, lease: claimed.lease });
    if (outcome?.stage === 'answered' && outcome.next === 'turn off') onGone(claimed.receiver);
    // Those of a failing webhook are postponed together, emails are not.
    return result.status === 'delivered' || isMail;
  }

  return {
    wake: loop.wake,
    capacity: () => ({ ...(stopped || times.delaySeconds > 0 ? NO_CAPACITY : capacity.free()), ...times }),
    attempt: (claims) => capacity.add(claims),
    async stop() {
      stopped = true;
      await loop.stop();
      await capacity.stop();
      clearInterval(renewal);
    },
  };
}

/** One that fails can be made up for by the next one. */
export const RENEW_EVERY_MS = 10_000;

export type Worker = {
  wake: () => void;
  /** What this process may lease of the deliveries that it stores. */
  capacity(): Capacity;
  /** Attempts what was leased so. */
  attempt(claims: Claim[]): void;
  /** Claims no more, releases what was not begun, and waits for what is under way. */
  stop(): Promise<void>;
};

type WorkerOptions = Omit<ClaimLoopOptions, 'capacity'> & {
  /** How many webhooks may be called at once. */
  concurrency: number;
  mailConnections: number;
  renewEveryMs?: number | undefined;
  /** Of the retry schedule. */
  times: Pick<Capacity, 'delaySeconds' | 'totalSeconds'>;
  /** Must not throw. */
  attempt: (claim: Claim, signal: AbortSignal) => Promise<Attempted>;
  /** Resolves when the result is stored or given up. Must not throw. */
  settle: (result: DeliveryResult) => Promise<void>;
  /** Called when a webhook's receiver wants no more. Must not throw. */
  onGone: (webhookId: string) => void;
  /** Ends the attempts under way; their deliveries are released. */
  signal: AbortSignal;
};

/**
 * Makes the loop that claims due deliveries as capacity becomes free for them: one statement at a time, a page of what
 * is due first, and behind a full page receiver by receiver.
 *
 * The loop is idle, claiming or pausing (see `createWorkerLoop`). What else it goes by is the backlog that the last
 * page has left, and the round over the names of receivers.
 */
function createClaimLoop(options: ClaimLoopOptions): ClaimLoop {
  const { database, capacity, now, metrics } = options;
  const watermark = createWatermark(now);
  const loop = createWorkerLoop('claim', claim, options);
  let backlog: Backlog = 'none';
  let isPageFull = false;
  /** Whether the last page has left its emails to a step. */
  let mailsWereLeft = false;
  /** The receiver after which the round goes on, and how long its steps took so far. */
  let round: { after: ReceiverName | null; startedAt: number; tookMs: number } | undefined;
  let nextRoundAt = Number.NEGATIVE_INFINITY;
  /** Whether anything became free while claiming, and whether a receiver has taken any of that. */
  let freed = { any: false, taken: false };

  async function claim(): Promise<boolean | number> {
    const free = capacity.free();
    const limit = Math.min(free.total, MAX_CLAIM);
    freed = { any: false, taken: false };
    if (limit === 0) {
      backlog = 'more';
      return false;
    }
    const since = new Date(watermark.since());
    const startedAt = performance.now();

    // Emails of one project on each page would use up all connections, and those behind it wait forever. So every other
    // page of a round leaves them to the step by names.
    mailsWereLeft = isPageFull && startedAt >= nextRoundAt && !mailsWereLeft;
    const forPage = mailsWereLeft ? { ...free, mails: 0 } : free;
    const page = await claimDue(database, { since, limit, capacity: forPage, page: PAGE });
    watermark.advance(page.resumeAt.getTime());
    add(page.claims, startedAt);
    isPageFull = page.pageFull;
    const isLarge = page.claims.length >= limit / 2;
    // It has used up what became free before it came.
    if (isLarge) freed = { any: false, taken: false };
    const isLimitReached = page.more && page.claims.length >= limit;
    backlog = isPageFull || isLimitReached ? 'more' : page.more ? 'capped' : 'none';

    const mails = page.claims.filter(({ content }) => content.channel === 'mail').length;
    const isWorthIt = isLarge || (mails > 0 && mails === forPage.mails);
    const isStepDue = isPageFull && (!isWorthIt || startedAt >= nextRoundAt);
    const claimed = page.claims.length + (isStepDue ? await step(since, limit, page.mailTenants) : 0);

    // What became free meanwhile has woken nobody.
    if (freed.any && mayBringMore(freed.taken)) loop.wake();
    if (mailsWereLeft || (isStepDue && round !== undefined)) return true;
    return isStepDue && !isWorthIt && claimed < FEW ? FRUITLESS_PAUSE_MS : false;
  }

  /** Claims for the next receivers of the round by their names, and ends it after the last. Returns how many. */
  async function step(since: Date, limit: number, mailTenants: string[]): Promise<number> {
    const startedAt = performance.now();
    const { after, ...begun } = round ?? { after: null, startedAt, tookMs: 0 };
    const { claims, last } = await claimByReceiver(database, {
      since,
      limit,
      capacity: capacity.free(),
      after,
      mailTenants,
    });
    add(claims, startedAt);
    const tookMs = begun.tookMs + performance.now() - startedAt;
    round = last === null ? undefined : { after: last, startedAt: begun.startedAt, tookMs };
    if (last === null) nextRoundAt = begun.startedAt + Math.max(ROUND_MS, ROUND_COST * tookMs);
    return claims.length;
  }

  function add(claims: Parameters<typeof capacity.add>[0], leasedAt: number): void {
    if (claims.length > 0) metrics?.onBatch('claims', claims.length);
    capacity.add(claims, leasedAt);
  }

  /**
   * Whether a further claim may bring something. A receiver at its limit that does not take deliveries may have those
   * that are left postponed just now: they can wait for that.
   */
  function mayBringMore(taken: boolean): boolean {
    return backlog === 'more' || (backlog === 'capped' && taken);
  }

  return {
    wake: loop.wake,
    onFreed(taken) {
      if (loop.isRunning()) freed = { any: true, taken: taken || freed.taken };
      else if (mayBringMore(taken)) loop.wake();
    },
    stop: () => loop.stop(),
  };
}

/** What one claim reads and locks: some milliseconds of work. */
const MAX_CLAIM = 250;

/** How many due deliveries are read to find some for receivers that are not at their limit. */
const PAGE = 500;

/** How long deliveries behind full pages may wait for a round by the names of their receivers. */
const ROUND_MS = 250;

/**
 * Beside full pages, rounds take at most one part in so many of the time: they walk over finished deliveries that an
 * old snapshot holds, 135 ms for 150,000.
 */
const ROUND_COST = 10;

/** Reading a page for this few costs more than it brings. */
const FEW = 8;
const FRUITLESS_PAUSE_MS = 100;

/**
 * What the last page has left: nothing; deliveries for receivers at their limits alone; or more than is looked at, or
 * claimed, at once.
 */
type Backlog = 'none' | 'capped' | 'more';

type ClaimLoop = {
  /** Something is due: claims at once, or after the pause or the claim under way. */
  wake: () => void;
  /** A claimed delivery has ended, and there is capacity for a further claim. */
  onFreed(taken: boolean): void;
  /** Waits for the claim under way; none begins after it. */
  stop(): Promise<void>;
};

type ClaimLoopOptions = {
  database: Database;
  capacity: Pick<ProcessCapacity, 'free' | 'add'>;
  now: () => number;
  log: Log;
  metrics?: Pick<Metrics, 'onBatch' | 'onWork'> | undefined;
};
