import type { Claim } from '../../store/delivery-queue.ts';
import { createCredits } from './concurrency.ts';

/**
 * Makes the lanes in which claimed deliveries wait and are sent, one lane for each receiver: `workers`
 * at once in all, at most half of them in one lane, and in turn over the lanes.
 *
 * How many deliveries a receiver may have claimed is its credit (see `createCredits`). When a receiver
 * turns slow, what still waits in its lane is given back, so that no lease runs out in a queue.
 */
export function createLanes({ workers, send, giveBack, onRoom }: LaneOptions): Lanes {
  const capacity = workers * CLAIMED_PER_WORKER;
  const perLane = Math.max(1, Math.floor(workers / 2));
  const credits = createCredits(capacity);
  const lanes = new Map<string, Lane>();
  /** Those with something waiting, the one whose turn is next first. */
  const ready = new Set<Lane>();
  const underWay = new Set<Promise<void>>();
  let claimed = 0;
  let sending = 0;

  function dispatch(): void {
    for (const lane of ready) {
      if (sending >= workers) return;
      const most = Math.min(perLane, credits.of(lane.receiver));
      while (lane.sending < most && sending < workers) {
        const claim = lane.waiting.shift();
        if (claim === undefined) break;
        start(lane, claim);
        if (ready.size > 1) break;
      }
      ready.delete(lane);
      if (lane.waiting.length > 0 && lane.sending < most) ready.add(lane);
    }
  }

  function start(lane: Lane, claim: Claim): void {
    lane.sending += 1;
    sending += 1;
    const sent = (tookMs: number) => {
      lane.sending -= 1;
      sending -= 1;
      const slow = credits.earn(lane.receiver, tookMs);
      if (slow) for (const waiting of lane.waiting.splice(0)) track(lane, giveBack(waiting));
      if (lane.waiting.length > 0) ready.add(lane);
      dispatch();
    };
    track(lane, send(claim, sent));
  }

  function track(lane: Lane, work: Promise<void>): void {
    const done = work.finally(() => {
      underWay.delete(done);
      claimed -= 1;
      lane.claimed -= 1;
      if (lane.claimed === 0) lanes.delete(lane.receiver);
      if (capacity - claimed >= capacity / 2 && lane.claimed <= credits.of(lane.receiver) / 2) onRoom();
    });
    underWay.add(done);
  }

  return {
    perReceiver: credits.atFirst,
    room: () => capacity - claimed,
    busy: () =>
      [...new Set([...lanes.keys(), ...credits.known()])].map((receiver) => ({
        receiver,
        free: Math.max(0, credits.of(receiver) - (lanes.get(receiver)?.claimed ?? 0)),
      })),
    add(claims) {
      for (const claim of claims) {
        const { receiver } = claim;
        const lane = lanes.get(receiver) ?? { receiver, waiting: [], sending: 0, claimed: 0 };
        lanes.set(receiver, lane);
        lane.waiting.push(claim);
        lane.claimed += 1;
        claimed += 1;
        ready.add(lane);
      }
      dispatch();
    },
    giveBackWaiting() {
      for (const lane of lanes.values()) {
        for (const waiting of lane.waiting.splice(0)) track(lane, giveBack(waiting));
      }
    },
    async untilEmpty() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/**
 * Claims and results are written in groups: what is claimed beyond the workers fills the time that those
 * take. Bodies have up to 256 KiB each.
 */
const CLAIMED_PER_WORKER = 8;

export type Lanes = {
  /** How many a receiver may have claimed that `busy` does not name. */
  perReceiver: number;
  /** How many more may be claimed. */
  room(): number;
  /** How many more each of the known receivers may have claimed. */
  busy(): { receiver: string; free: number }[];
  add(claims: Claim[]): void;
  /** Gives back what is not being sent. */
  giveBackWaiting(): void;
  /** Resolves when nothing is claimed any more. */
  untilEmpty(): Promise<void>;
};

export type LaneOptions = {
  workers: number;
  /** Sends a delivery, calls `sent` with how long it took, and resolves when that is written down. Must not throw. */
  send: (claim: Claim, sent: (tookMs: number) => void) => Promise<void>;
  /** Lets others have a claimed delivery. Must not throw. */
  giveBack: (claim: Claim) => Promise<void>;
  /** Called when it is worth to claim more. */
  onRoom: () => void;
};

type Lane = { receiver: string; waiting: Claim[]; sending: number; claimed: number };
