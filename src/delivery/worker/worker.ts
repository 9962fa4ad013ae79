import type { Claim } from '../../store/deliveries/claim.ts';
import type { DeliveryResult } from '../../store/deliveries/delivery-results.ts';
import { type Capacity, NO_CAPACITY } from '../../store/deliveries/webhook-deliveries.ts';
import type { Attempted } from './attempt.ts';
import { createCapacity } from './capacity.ts';
import { type ClaimLoopOptions, createClaimLoop } from './claim-loop.ts';

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
  let stopped = false;

  async function send(claimed: Claim, onAnswer: (tookMs: number) => void): Promise<boolean> {
    const startedAt = performance.now();
    const { result, gone } = await attempt(claimed, signal);
    onAnswer(isUnanswered(result) ? Number.POSITIVE_INFINITY : performance.now() - startedAt);
    await settle(result);
    if (gone) onGone(claimed.receiver);
    // Those of a failing webhook are postponed together, mails are not.
    return result.status === 'delivered' || claimed.content.channel === 'mail';
  }

  return {
    wake: loop.wake,
    capacity: () => ({ ...(stopped || times.delaySeconds > 0 ? NO_CAPACITY : capacity.free()), ...times }),
    attempt: (claims) => capacity.add(claims),
    async stop() {
      stopped = true;
      await loop.stop();
      await capacity.stop();
    },
  };
}

/** Attempted without an answer, such as a connection that was refused. */
function isUnanswered({ status, attempt }: DeliveryResult): boolean {
  return status !== 'delivered' && attempt !== undefined && attempt.responseStatus === undefined;
}

export type Worker = {
  wake: () => void;
  /** What this process may lease of the deliveries that it stores. */
  capacity(): Capacity;
  /** Attempts what was leased so. */
  attempt(claims: Claim[]): void;
  /** Claims no more, releases what was not begun, and waits for what is under way. */
  stop(): Promise<void>;
};

export type WorkerOptions = Omit<ClaimLoopOptions, 'capacity'> & {
  /** How many deliveries may be under way at once. */
  concurrency: number;
  mailConnections: number;
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
