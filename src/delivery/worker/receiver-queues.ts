import type { Claim } from '../../store/delivery-queue.ts';

/**
 * Makes the queues in which claimed deliveries wait to be sent, one for each receiver: `workers` are sent at
 * once in all, at most half of them to one receiver, and the receivers take turns.
 *
 * How many deliveries a receiver may have claimed depends on how fast it answers (see `createConcurrency`).
 * When it turns slow, what still waits in its queue is released, so that no lease runs out there.
 */
export function createReceiverQueues({ workers, send, release, onCapacity }: QueueOptions): ReceiverQueues {
  const maxClaimed = workers * CLAIMED_PER_WORKER;
  const maxPerReceiver = Math.max(1, Math.floor(workers / 2));
  const concurrency = createConcurrency(maxClaimed);
  const queues = new Map<string, Queue>();
  /** Those with something waiting, in the order of their turns. */
  const ready = new Set<Queue>();
  const underWay = new Set<Promise<void>>();
  let claimed = 0;
  let sending = 0;

  function dispatch(): void {
    for (const queue of ready) {
      if (sending >= workers) return;
      const limit = Math.min(maxPerReceiver, concurrency.of(queue.receiver));
      while (queue.sending < limit && sending < workers) {
        const claim = queue.waiting.shift();
        if (claim === undefined) break;
        start(queue, claim);
        if (ready.size > 1) break;
      }
      ready.delete(queue);
      if (queue.waiting.length > 0 && queue.sending < limit) ready.add(queue);
    }
  }

  function start(queue: Queue, claim: Claim): void {
    queue.sending += 1;
    sending += 1;
    const onSent = (tookMs: number) => {
      queue.sending -= 1;
      sending -= 1;
      const slow = concurrency.adjust(queue.receiver, tookMs);
      if (slow) releaseWaiting(queue);
      if (queue.waiting.length > 0) ready.add(queue);
      dispatch();
    };
    track(queue, send(claim, onSent));
  }

  function releaseWaiting(queue: Queue): void {
    for (const waiting of queue.waiting.splice(0)) track(queue, release(waiting));
  }

  function track(queue: Queue, work: Promise<void>): void {
    const done = work.finally(() => {
      underWay.delete(done);
      claimed -= 1;
      queue.claimed -= 1;
      if (queue.claimed === 0) queues.delete(queue.receiver);
      const half = concurrency.of(queue.receiver) / 2;
      if (claimed <= maxClaimed / 2 && queue.claimed <= half) onCapacity();
    });
    underWay.add(done);
  }

  return {
    perReceiver: concurrency.initial,
    capacity: () => maxClaimed - claimed,
    busy: () =>
      [...new Set([...queues.keys(), ...concurrency.known()])].map((receiver) => ({
        receiver,
        free: Math.max(0, concurrency.of(receiver) - (queues.get(receiver)?.claimed ?? 0)),
      })),
    add(claims) {
      for (const claim of claims) {
        const { receiver } = claim;
        const queue = queues.get(receiver) ?? { receiver, waiting: [], sending: 0, claimed: 0 };
        queues.set(receiver, queue);
        queue.waiting.push(claim);
        queue.claimed += 1;
        claimed += 1;
        ready.add(queue);
      }
      dispatch();
    },
    releaseWaiting() {
      for (const queue of queues.values()) releaseWaiting(queue);
    },
    async whenEmpty() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/**
 * Claims and results are written in batches: what is claimed beyond the workers keeps these busy meanwhile.
 * Bodies have up to 256 KiB each.
 */
const CLAIMED_PER_WORKER = 8;

/**
 * Keeps how many deliveries each receiver may have claimed at a time: a few at first, one more with each
 * quick answer up to `max`, and one after a slow answer or none. However many deliveries wait for receivers
 * that are dead or unknown, there is capacity for the others.
 */
function createConcurrency(max: number): Concurrency {
  const initial = Math.min(max, INITIAL_CONCURRENCY);
  /** The receiver that answered last is at the end. */
  const limits = new Map<string, number>();
  return {
    initial,
    of: (receiver) => limits.get(receiver) ?? initial,
    known: () => limits.keys(),
    adjust(receiver, tookMs) {
      const slow = tookMs >= SLOW_MS;
      const before = limits.get(receiver) ?? initial;
      limits.delete(receiver);
      limits.set(receiver, slow ? 1 : Math.min(max, before + 1));
      const [oldest] = limits.keys();
      if (limits.size > MAX_KNOWN && oldest !== undefined) limits.delete(oldest);
      return slow;
    },
  };
}

const INITIAL_CONCURRENCY = 4;

/** A slower receiver takes more than its share of the workers' time. */
const SLOW_MS = 2_000;

/** Their names are parameters of each claim. */
const MAX_KNOWN = 200;

export type ReceiverQueues = {
  /** How many deliveries a receiver may have claimed that `busy` does not name. */
  perReceiver: number;
  /** How many more may be claimed. */
  capacity(): number;
  /** How many more each of the known receivers may have claimed. */
  busy(): { receiver: string; free: number }[];
  add(claims: Claim[]): void;
  /** Releases what is not being sent. */
  releaseWaiting(): void;
  /** Resolves when nothing is claimed any more. */
  whenEmpty(): Promise<void>;
};

export type QueueOptions = {
  workers: number;
  /**
   * Sends a delivery, calls `onSent` with how long that took, and resolves when the result is stored. Must
   * not throw.
   */
  send: (claim: Claim, onSent: (tookMs: number) => void) => Promise<void>;
  /** Lets any process claim the delivery again. Must not throw. */
  release: (claim: Claim) => Promise<void>;
  /** Called when there is enough capacity for a further claim. */
  onCapacity: () => void;
};

type Queue = { receiver: string; waiting: Claim[]; sending: number; claimed: number };

type Concurrency = {
  /** The limit of a receiver that is not known. */
  initial: number;
  of(receiver: string): number;
  known(): Iterable<string>;
  /** Adjusts the limit to how long an answer, or the lack of one, took. True if that was slow. */
  adjust(receiver: string, tookMs: number): boolean;
};
