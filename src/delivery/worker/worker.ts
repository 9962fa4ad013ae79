import { renewLeases } from '../../store/deliveries/claim.ts';
import type { Claim } from '../../store/deliveries/claimed.ts';
import { type Capacity, NO_CAPACITY } from '../../store/deliveries/fairness.ts';
import type { DeliveryResult } from '../../store/deliveries/settle.ts';
import type { Attempted } from './attempt.ts';
import { ProcessCapacity } from './capacity.ts';
import { ClaimLoop, type ClaimLoopOptions } from './claim-loop.ts';

/**
 * Makes the worker that claims due deliveries, attempts them and has the results stored: as many at once as
 * `concurrency` says, fairly over tenants and receivers.
 *
 * `wake` makes it claim at once. Between wakes it claims by itself as capacity becomes free. What this process
 * stored under a lease of its own it gets by `attempt`, without asking the database.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { times, attempt, settle, onGone, signal } = options;
  const capacity = new ProcessCapacity({
    ...options,
    send,
    release: ({ id, lease }) => settle({ id, lease, status: 'pending', delayMs: 0 }),
    onFreed: (taken) => loop.onFreed(taken),
  });
  const loop = new ClaimLoop({ ...options, capacity });
  /** Emails under way, whose leases are renewed: webhooks have answered, or been given up, long before theirs end. */
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
    // What waits for a failing webhook is postponed by its circuit breaker; a failed email says nothing of the others.
    return result.status === 'delivered' || isMail;
  }

  return {
    wake: () => loop.wake(),
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
