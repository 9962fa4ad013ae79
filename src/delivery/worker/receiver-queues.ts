import type { Claim } from '../../store/deliveries/claim.ts';
import { type FreePlaces, LEASE_SECONDS } from '../../store/deliveries/delivery-queue-table.ts';
import { createConcurrency, keyOf, type Receiver } from './concurrency.ts';

/**
 * Makes the queues in which claimed deliveries wait to be sent, one for each receiver of a share: at most `maxWorkers`
 * are sent at once, half of them to one receiver, and the receivers take turns.
 *
 * It is fair to shares (projects, and apart from them their forms made without a key), then to receivers:
 *
 * - A share has at most half of the places while others have deliveries too.
 * - Receivers whose last answer was not quick, or that are not known, have at most half of the places, and
 *   those of one share a quarter, or up to half while they answer quickly. The rest is free for receivers that
 *   have just answered.
 * - How many deliveries a receiver may have claimed depends on how fast it answers (see `createConcurrency`).
 *   When it turns slow, what still waits in its queue is released, so that no lease runs out there.
 */
export function createReceiverQueues(options: QueueOptions): ReceiverQueues {
  const { maxWorkers, workers, send, release, onCapacity } = options;
  const maxClaimed = maxWorkers * CLAIMED_PER_WORKER;
  const perShare = maxClaimed / 2;
  const half = partOf(maxWorkers, 2);
  const concurrency = createConcurrency({ max: maxClaimed, unproven: partOf(maxWorkers, 4) });
  const queues = new Map<string, Queue>();
  const shares = new Map<string, Share>();
  /** Those with something waiting, in the order of their turns. */
  const ready = new Set<Queue>();
  const underWay = new Set<Promise<void>>();
  let claimed = 0;
  let claimedBytes = 0;
  let sending = 0;
  let sendingUnproven = 0;

  function dispatch(): void {
    for (const queue of ready) {
      if (sending >= maxWorkers) return;
      while (mayStart(queue)) {
        const next = queue.waiting.shift();
        if (next === undefined) break;
        if (performance.now() - next.since > LONGEST_WAIT_MS) track(queue, next.claim, released(next.claim));
        else start(queue, next.claim);
        if (ready.size > 1) break;
      }
      // A queue that its share keeps from starting stays where it is, for the next completion.
      if (queue.waiting.length > 0 && queue.sending < limitOf(queue) && !mayStart(queue)) continue;
      ready.delete(queue);
      if (queue.waiting.length > 0 && queue.sending < limitOf(queue)) ready.add(queue);
    }
  }

  function mayStart(queue: Queue): boolean {
    const { share } = queue;
    if (sending >= maxWorkers || queue.sending >= limitOf(queue)) return false;
    if (shares.size > 1 && share.sending >= half) return false;
    // Receivers that do not answer cost nothing, and must not use up what is left to the others.
    if (concurrency.isQuick(queue.key)) return sending - sendingUnproven < workers();
    return sendingUnproven < half && share.sendingUnproven < concurrency.ofUnproven(share.name);
  }

  function limitOf({ key }: Queue): number {
    return Math.min(half, concurrency.of(key));
  }

  function start(queue: Queue, claim: Claim): void {
    const { share } = queue;
    const unproven = concurrency.isQuick(queue.key) ? 0 : 1;
    const count = (change: 1 | -1) => {
      queue.sending += change;
      share.sending += change;
      sending += change;
      share.sendingUnproven += change * unproven;
      sendingUnproven += change * unproven;
    };
    count(1);
    const onSent = (tookMs: number) => {
      count(-1);
      const slow = concurrency.adjust({ share: share.name, receiver: queue.receiver }, tookMs);
      if (slow) releaseWaiting(queue);
      if (queue.waiting.length > 0) ready.add(queue);
      dispatch();
    };
    track(queue, claim, send(claim, onSent));
  }

  function releaseWaiting(queue: Queue): void {
    for (const { claim } of queue.waiting.splice(0)) track(queue, claim, released(claim));
  }

  const released = (claim: Claim) => release(claim).then(() => false);

  function track(queue: Queue, claim: Claim, work: Promise<boolean>): void {
    const done = work.then((taken) => {
      underWay.delete(done);
      claimed -= 1;
      claimedBytes -= bytesOf(claim);
      queue.claimed -= 1;
      queue.share.claimed -= 1;
      if (queue.claimed === 0) queues.delete(queue.key);
      if (queue.share.claimed === 0) shares.delete(queue.share.name);
      const enough = concurrency.of(queue.key) / 2;
      if (claimed <= maxClaimed / 2 && queue.share.claimed <= perShare / 2 && queue.claimed <= enough)
        onCapacity(taken);
    });
    underWay.add(done);
  }

  function shareNamed(name: string): Share {
    const share = shares.get(name) ?? { name, claimed: 0, sending: 0, sendingUnproven: 0 };
    shares.set(name, share);
    return share;
  }

  /** How many more deliveries to receivers that are not known to be quick a share may have claimed. */
  function unprovenFree(): Map<Share, number> {
    const placesOf = ({ name }: Share) => concurrency.ofUnproven(name) * UNPROVEN_PER_PLACE;
    const free = new Map([...shares.values()].map((share) => [share, placesOf(share)]));
    for (const { share, key, claimed: ofReceiver } of queues.values()) {
      if (!concurrency.isQuick(key)) free.set(share, Math.max(0, (free.get(share) ?? 0) - ofReceiver));
    }
    return free;
  }

  /** Receivers with claims, and those that have just answered. */
  function known(): Map<string, Receiver> {
    const answered = concurrency.known().map((receiver) => [keyOf(receiver), receiver] as const);
    const claiming = [...queues].map(
      ([key, { receiver, share }]) => [key, { share: share.name, receiver }] as const,
    );
    return new Map([...answered, ...claiming]);
  }

  return {
    places() {
      const free = unprovenFree();
      const bytes = Math.max(0, MAX_CLAIMED_BYTES - claimedBytes);
      const perReceiver = (key: string) => {
        const queue = queues.get(key);
        const most = concurrency.of(key) - (queue?.claimed ?? 0);
        const bound =
          queue === undefined || concurrency.isQuick(key) ? most : (free.get(queue.share) ?? most);
        return Math.max(0, Math.min(most, bound));
      };
      return {
        total: bytes === 0 ? 0 : Math.max(0, maxClaimed - claimed),
        bytes,
        perReceiver: concurrency.initial,
        perShare,
        perShareUnknown: concurrency.ofUnproven('') * UNPROVEN_PER_PLACE,
        receivers: [...known()].map(([key, receiver]) => ({ ...receiver, free: perReceiver(key) })),
        shares: [...free].map(([share, unknown]) => ({
          share: share.name,
          free: Math.max(0, perShare - share.claimed),
          unknown,
        })),
      };
    },
    add(claims) {
      for (const claim of claims) {
        const key = keyOf(claim);
        const queue = queues.get(key) ?? {
          key,
          receiver: claim.receiver,
          share: shareNamed(claim.share),
          waiting: [],
          sending: 0,
          claimed: 0,
        };
        queues.set(key, queue);
        queue.claimed += 1;
        queue.share.claimed += 1;
        claimed += 1;
        claimedBytes += bytesOf(claim);
        if (claimedBytes > 2 * MAX_CLAIMED_BYTES) {
          track(queue, claim, released(claim));
        } else {
          queue.waiting.push({ claim, since: performance.now() });
          ready.add(queue);
        }
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

function partOf(workers: number, parts: number): number {
  return Math.max(1, Math.floor(workers / parts));
}

/** The body in memory: of mails, what they are made of is small beside it. */
function bytesOf({ content }: Claim): number {
  return content.channel === 'webhook' ? (content.body?.length ?? 0) : 0;
}

/** Claims and results are written in batches: what is claimed beyond the workers keeps these busy meanwhile. */
const CLAIMED_PER_WORKER = 16;

/**
 * Bodies have up to 256 KiB each. What this process stores under its own lease is not counted beforehand, and
 * released beyond twice as much.
 */
const MAX_CLAIMED_BYTES = 16 * 1024 * 1024;

/** As many time-outs in a row end well within a lease. */
const UNPROVEN_PER_PLACE = 2;

/** No attempt begins that might last longer than its lease: it takes up to 10 s, and its result some more. */
const LONGEST_WAIT_MS = (LEASE_SECONDS - 20) * 1_000;

export type ReceiverQueues = {
  /** How many more deliveries may be claimed. */
  places(): FreePlaces & { total: number };
  add(claims: Claim[]): void;
  /** Releases what is not being sent. */
  releaseWaiting(): void;
  /** Resolves when nothing is claimed any more. */
  whenEmpty(): Promise<void>;
};

export type QueueOptions = {
  maxWorkers: number;
  /** How many deliveries may be sent at once now to receivers that answer quickly, up to `maxWorkers`. */
  workers: () => number;
  /**
   * Sends a delivery, calls `onSent` with how long the answer took (for ever, if there was none), and resolves
   * when the result is stored: to whether the receiver took it. Must not throw.
   */
  send: (claim: Claim, onSent: (tookMs: number) => void) => Promise<boolean>;
  /** Lets any process claim the delivery again. Must not throw. */
  release: (claim: Claim) => Promise<void>;
  /** Called when there is enough capacity for a further claim, and whether the last delivery was taken. */
  onCapacity: (taken: boolean) => void;
};

type Queue = {
  /** As `keyOf` makes it. */
  key: string;
  receiver: string;
  share: Share;
  waiting: { claim: Claim; since: number }[];
  sending: number;
  claimed: number;
};

type Share = { name: string; claimed: number; sending: number; sendingUnproven: number };
