import { claimByReceiver, claimDue, type ReceiverName } from '../../store/deliveries/claim.ts';
import type { Claim } from '../../store/deliveries/claimed.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { DeliveryOptions } from '../options.ts';
import type { ProcessCapacity } from './capacity.ts';
import { createWatermark } from './watermark.ts';
import { createWorkerLoop } from './worker-loop.ts';

/**
 * Claims due deliveries as capacity becomes free for them: one statement at a time, a page of what is due first, and
 * behind a full page receiver by receiver.
 *
 * The loop is idle, claiming or pausing (see `createWorkerLoop`). What else it goes by is the backlog that the last
 * page has left, and the round over the names of receivers.
 */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #watermark: ReturnType<typeof createWatermark>;
  readonly #loop: ReturnType<typeof createWorkerLoop>;
  /** Of the last page, as are the next two: only `#claim` writes them. */
  #backlog: Backlog = 'none';
  #isPageFull = false;
  /** Whether its emails were left to a step by receivers. */
  #mailsWereLeft = false;
  /** The receiver after which the round goes on, and how long its steps took so far. Only `#step` writes it. */
  #round: { after: ReceiverName | null; startedAt: number; tookMs: number } | undefined;
  /** By `performance.now()`. Only `#step` writes it. */
  #nextRoundAt = Number.NEGATIVE_INFINITY;
  /**
   * Whether anything became free while claiming, and whether a receiver has taken any of that: `onFreed` notes it,
   * `#claim` begins anew.
   */
  #freed = { any: false, taken: false };

  constructor(options: ClaimLoopOptions) {
    this.#options = options;
    this.#watermark = createWatermark(options.now);
    this.#loop = createWorkerLoop('claim', () => this.#claim(), options);
  }

  /** Something is due: claims at once, or after the pause or the claim under way. */
  wake(): void {
    this.#loop.wake();
  }

  /** A claimed delivery has ended, and there is capacity for a further claim. */
  onFreed(taken: boolean): void {
    if (this.#loop.isRunning()) this.#freed = { any: true, taken: taken || this.#freed.taken };
    else if (this.#mayBringMore(taken)) this.#loop.wake();
  }

  /** Waits for the claim under way; none begins after it. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** True: claims again at once; or after so many milliseconds. */
  async #claim(): Promise<boolean | number> {
    const { database, capacity } = this.#options;
    const free = capacity.free();
    const limit = Math.min(free.total, MAX_CLAIM);
    this.#freed = { any: false, taken: false };
    if (limit === 0) {
      this.#backlog = 'more';
      return false;
    }
    const since = new Date(this.#watermark.since());
    const startedAt = performance.now();

    // One project's emails could fill each page and use up all connections, so that those of others behind the page
    // waited forever. So every other page claims no emails, and the step by receivers claims some of all projects.
    this.#mailsWereLeft = this.#isPageFull && startedAt >= this.#nextRoundAt && !this.#mailsWereLeft;
    const forPage = this.#mailsWereLeft ? { ...free, mails: 0 } : free;
    const page = await claimDue(database, { since, limit, capacity: forPage, page: PAGE });
    this.#watermark.advance(page.resumeAt.getTime());
    this.#add(page.claims, startedAt);
    this.#isPageFull = page.pageFull;
    const isLarge = page.claims.length >= limit / 2;
    // It was claimed for what had become free until then: only what becomes free from now on calls for a further claim.
    if (isLarge) this.#freed = { any: false, taken: false };
    const isLimitReached = page.more && page.claims.length >= limit;
    this.#backlog = page.pageFull || isLimitReached ? 'more' : page.more ? 'capped' : 'none';

    const mails = page.claims.filter(({ content }) => content.channel === 'mail').length;
    const isWorthIt = isLarge || (mails > 0 && mails === forPage.mails);
    const isStepDue = page.pageFull && (!isWorthIt || startedAt >= this.#nextRoundAt);
    const claimed = page.claims.length + (isStepDue ? await this.#step(since, limit, page.mailTenants) : 0);

    // What became free while this was claiming has not woken the loop.
    if (this.#freed.any && this.#mayBringMore(this.#freed.taken)) this.#loop.wake();
    if (this.#mailsWereLeft || (isStepDue && this.#round !== undefined)) return true;
    return isStepDue && !isWorthIt && claimed < FEW ? FRUITLESS_PAUSE_MS : false;
  }

  /** Claims for the next receivers of the round by their names, and ends it after the last. Returns how many. */
  async #step(since: Date, limit: number, mailTenants: string[]): Promise<number> {
    const { database, capacity } = this.#options;
    const startedAt = performance.now();
    const { after, ...begun } = this.#round ?? { after: null, startedAt, tookMs: 0 };
    const asked = { since, limit, capacity: capacity.free(), after, mailTenants };
    const { claims, last } = await claimByReceiver(database, asked);
    this.#add(claims, startedAt);
    const tookMs = begun.tookMs + performance.now() - startedAt;
    this.#round = last === null ? undefined : { after: last, startedAt: begun.startedAt, tookMs };
    if (last === null) this.#nextRoundAt = begun.startedAt + Math.max(ROUND_MS, ROUND_COST * tookMs);
    return claims.length;
  }

  #add(claims: Claim[], leasedAt: number): void {
    const { metrics, capacity } = this.#options;
    if (claims.length > 0) metrics?.onBatch('claims', claims.length);
    capacity.add(claims, leasedAt);
  }

  /**
   * Whether a further claim may bring something. A receiver at its limit that does not take deliveries may have those
   * that are left postponed just now: they can wait for that.
   */
  #mayBringMore(taken: boolean): boolean {
    return this.#backlog === 'more' || (this.#backlog === 'capped' && taken);
  }
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

export type ClaimLoopOptions = Pick<DeliveryOptions, 'database' | 'now' | 'log'> & {
  capacity: Pick<ProcessCapacity, 'free' | 'add'>;
  metrics?: Pick<Metrics, 'onBatch' | 'onWork'> | undefined;
};
