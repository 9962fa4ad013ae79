import type { Claim } from '../../store/deliveries/claimed.ts';
import type { FreeCapacity } from '../../store/deliveries/fairness.ts';

/**
 * Makes what holds the deliveries that this process has claimed, and sends as many of them at once as may be. A claim
 * waits for its receiver, is sent, and has ended when its result is stored. Or it is released, for any process to claim
 * again: if it has waited too long, its receiver has turned slow, its bytes are too many, or the process stops.
 *
 * It is fair to tenants (projects, and apart from them their forms made without a key), then to receivers, which take
 * turns:
 *
 * - A receiver has at most half of the concurrency, and of that as much as it is trusted with: little at first, one more
 *   with each quick answer, and one delivery at a time after a slow answer or none.
 * - A tenant has at most half while others have deliveries too.
 * - Receivers whose last answer was not quick, or that are not known, have at most half together, those of one tenant
 *   a quarter. The rest is free for receivers that have just answered.
 * - Emails have connections of their own, and no more are claimed than these can send at once. They can take minutes, and
 *   are no part of the concurrency: no webhook waits for them, nor they for webhooks.
 */
export function createCapacity(options: CapacityOptions): ProcessCapacity {
  const { concurrency, mailConnections, send, release, onFreed } = options;
  const most = boundsOf(concurrency);
  /** Who answered last is at the end. */
  const receivers = new Map<string, Receiver>();
  /** Those with claims, as are the `active` receivers. */
  const tenants = new Map<string, Tenant>();
  const active = new Set<Receiver>();
  const total: Counts = { claimed: 0, bytes: 0, sending: 0, unproven: 0 };
  /** Those that answered last, which are named to the database. */
  const answered = new Set<Receiver>();
  /** Those with something waiting, in the order of their turns. */
  const ready = { webhook: new Set<Receiver>(), mail: new Set<Receiver>() };
  const underWay = new Set<Promise<void>>();
  let isStopped = false;

  function count(receiver: Receiver, what: keyof Counts, change: number): void {
    receiver[what] += change;
    if (receiver.channel === 'webhook') for (const counts of [receiver.tenant, total]) counts[what] += change;
    else if (what === 'claimed') receiver.tenant.mails += change;
  }

  function dispatch(channel: Channel): void {
    const ofChannel = ready[channel];
    for (const receiver of ofChannel) {
      if (channel === 'webhook' && total.sending >= concurrency) return;
      const isAtLimit = receiver.sending >= limitOf(receiver);
      if (isAtLimit || receiver.waiting.length === 0) ofChannel.delete(receiver);
      // Whom others keep from starting stays where it is, for the next answer.
      if (isAtLimit || !mayStart(receiver)) continue;
      const next = receiver.waiting.shift();
      if (next === undefined) continue;
      if (performance.now() - next.since > LONGEST_WAIT_MS[receiver.channel]) {
        end(receiver, next.claim, released(next.claim));
      } else start(receiver, next.claim);
      ofChannel.delete(receiver);
      ofChannel.add(receiver);
    }
  }

  function limitOf({ limit }: Receiver): number {
    return Math.min(most.ofReceiver, limit);
  }

  /** Whether the others leave something to a receiver that is below its limit. */
  function mayStart(receiver: Receiver): boolean {
    const { channel, tenant } = receiver;
    if (channel === 'mail') return true;
    if (
      tenant.sending >= most.ofTenant &&
      tenants.values().some((other) => other !== tenant && other.claimed > 0)
    )
      return false;
    return isQuick(receiver) || (total.unproven < most.unproven && tenant.unproven < most.unprovenOfTenant);
  }

  function start(receiver: Receiver, claim: Claim): void {
    const { channel } = receiver;
    const unproven = channel === 'mail' || isQuick(receiver) ? 0 : 1;
    count(receiver, 'sending', 1);
    count(receiver, 'unproven', unproven);
    const onAnswer = (tookMs: number) => {
      count(receiver, 'sending', -1);
      count(receiver, 'unproven', -unproven);
      learn(receiver, tookMs);
      if (receiver.waiting.length > 0) ready[channel].add(receiver);
      dispatch(channel);
    };
    end(receiver, claim, send(claim, onAnswer));
  }

  /** Trusts a receiver by how long its answer took. Deliveries to one that has turned slow would outlast its lease. */
  function learn(receiver: Receiver, tookMs: number): void {
    const isSlow = tookMs >= SLOW_MS;
    receiver.limit = isSlow ? 1 : Math.min(most.claimed, receiver.limit + 1);
    receiver.answeredAt = performance.now();
    receivers.delete(receiver.key);
    receivers.set(receiver.key, receiver);
    answered.delete(receiver);
    answered.add(receiver);
    const [oldest] = answered;
    if (answered.size > MAX_NAMED && oldest !== undefined) answered.delete(oldest);
    if (isSlow) releaseWaiting(receiver);
  }

  function releaseWaiting(receiver: Receiver): void {
    for (const { claim } of receiver.waiting.splice(0)) end(receiver, claim, released(claim));
  }

  const released = (claim: Claim) => release(claim).then(() => false);

  /** Counts a claim as ended after the work that is left to do for it. */
  function end(receiver: Receiver, claim: Claim, work: Promise<boolean>): void {
    const ended = work.then((isTaken) => {
      underWay.delete(ended);
      count(receiver, 'claimed', -1);
      count(receiver, 'bytes', -bytesOf(claim));
      if (receiver.claimed === 0) active.delete(receiver);
      if (receiver.tenant.claimed + receiver.tenant.mails === 0) tenants.delete(receiver.tenant.name);
      const isFree =
        receiver.tenant.claimed <= most.claimedOfTenant / 2 && receiver.claimed <= receiver.limit / 2;
      if (total.claimed <= most.claimed / 2 && isFree) onFreed(isTaken);
    });
    underWay.add(ended);
  }

  /** The receiver of a claim, which counts there from now on. */
  function claimFor(claim: Claim): Receiver {
    const { tenant: name, content } = claim;
    const key = `${name}\n${claim.receiver}`;
    const tenant = tenants.get(name) ?? { name, mails: 0, claimed: 0, bytes: 0, sending: 0, unproven: 0 };
    tenants.set(name, tenant);
    const receiver =
      receivers.get(key) ?? add({ key, tenant, name: claim.receiver, channel: content.channel });
    receiver.tenant = tenant;
    active.add(receiver);
    count(receiver, 'claimed', 1);
    count(receiver, 'bytes', bytesOf(claim));
    return receiver;
  }

  function add(given: Pick<Receiver, 'key' | 'tenant' | 'name' | 'channel'>): Receiver {
    const unknown = { limit: INITIAL_LIMIT, answeredAt: Number.NEGATIVE_INFINITY, waiting: [] };
    const receiver = { ...given, ...unknown, claimed: 0, bytes: 0, sending: 0, unproven: 0 };
    if (receivers.size >= MAX_KNOWN) {
      const oldest = receivers.values().find(({ claimed }) => claimed === 0);
      receivers.delete(oldest?.key ?? '');
      if (oldest !== undefined) answered.delete(oldest);
    }
    receivers.set(given.key, receiver);
    return receiver;
  }

  return {
    free() {
      const inUse = new Map([...tenants.values()].map((tenant) => [tenant, { unproven: 0, mails: 0 }]));
      let mails = 0;
      for (const receiver of active) {
        const { channel, tenant, claimed, waiting, sending } = receiver;
        const ofTenant = inUse.get(tenant);
        if (ofTenant === undefined) continue;
        if (channel === 'mail') {
          ofTenant.mails += waiting.length + sending;
          mails += waiting.length + sending;
        } else if (!isQuick(receiver)) ofTenant.unproven += claimed;
      }
      const unprovenFree = (tenant: Tenant) =>
        Math.max(0, most.claimedUnproven - (inUse.get(tenant)?.unproven ?? 0));
      const freeFor = (receiver: Receiver) => {
        const left = Math.max(0, receiver.limit - receiver.claimed);
        const isBound = receiver.claimed > 0 && !isQuick(receiver);
        return isBound ? Math.min(left, unprovenFree(receiver.tenant)) : left;
      };
      const bytes = Math.max(0, MAX_CLAIMED_BYTES - total.bytes);
      return {
        total: bytes === 0 ? 0 : Math.max(0, most.claimed - total.claimed),
        bytes,
        mails: Math.max(0, mailConnections - mails),
        perReceiver: INITIAL_LIMIT,
        perTenant: most.claimedOfTenant,
        perTenantUnknown: most.claimedUnproven,
        receivers: [...new Set([...answered, ...active])].map((receiver) => ({
          tenant: receiver.tenant.name,
          receiver: receiver.name,
          free: freeFor(receiver),
        })),
        tenants: [...inUse].map(([tenant, used]) => ({
          tenant: tenant.name,
          free: Math.max(0, most.claimedOfTenant - tenant.claimed),
          unknown: unprovenFree(tenant),
          mails: used.mails,
        })),
      };
    },
    add(claims, since = performance.now()) {
      for (const claim of claims) {
        const receiver = claimFor(claim);
        if (isStopped || total.bytes > 2 * MAX_CLAIMED_BYTES) {
          end(receiver, claim, released(claim));
        } else {
          receiver.waiting.push({ claim, since });
          ready[receiver.channel].add(receiver);
        }
      }
      dispatch('mail');
      dispatch('webhook');
    },
    async stop() {
      isStopped = true;
      for (const receiver of active) releaseWaiting(receiver);
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/** Each bound of what may be sent and claimed at once, by the concurrency. */
export function boundsOf(concurrency: number) {
  const part = (parts: number) => Math.max(1, Math.floor(concurrency / parts));
  const claimed = CLAIMED_PER_SENT * concurrency;
  return {
    ofReceiver: part(2),
    ofTenant: part(2),
    unproven: part(2),
    unprovenOfTenant: part(4),
    claimed,
    claimedOfTenant: claimed / 2,
    claimedUnproven: UNPROVEN_PER_SENT * part(4),
  };
}

function isQuick({ limit, answeredAt }: Receiver): boolean {
  return limit > 1 && performance.now() - answeredAt < RECENT_MS;
}

/** The body in memory: of emails, what they are made of is small beside it. */
function bytesOf({ content }: Claim): number {
  return content.channel === 'webhook' ? (content.body?.length ?? 0) : 0;
}

/** Claims and results are written in batches: what is claimed beyond what is sent keeps senders busy meanwhile. */
const CLAIMED_PER_SENT = 16;

/** As many time-outs in a row end well within a lease. */
const UNPROVEN_PER_SENT = 2;

/**
 * Bodies have up to 256 KiB each. What this process stores under its own lease is not counted beforehand, and
 * released beyond twice as much.
 */
const MAX_CLAIMED_BYTES = 16 * 1024 * 1024;

/** No attempt begins later after the beginning of its lease: it and storing its result take the rest. */
export const LONGEST_WAIT_MS: Record<Channel, number> = { webhook: 16_000, mail: 2_000 };

const INITIAL_LIMIT = 4;

/** A slower receiver takes more than its part of the time. */
const SLOW_MS = 2_000;

/** What an answer says about the next one for: a receiver that goes away with a thousand others is doubted soon. */
const RECENT_MS = 60_000;

/** A few MB. */
const MAX_KNOWN = 10_000;

/** The names of those that answered last are parameters of each claim. */
const MAX_NAMED = 200;

export type ProcessCapacity = {
  /** How many more deliveries may be claimed. */
  free(): FreeCapacity & { total: number };
  /** `since`: when their leases began, or earlier, by `performance.now()`; by default now. */
  add(claims: Claim[], since?: number): void;
  /** Releases what is not being sent, from now on at once, and waits until nothing is claimed any more. */
  stop(): Promise<void>;
};

export type CapacityOptions = {
  /** How many webhooks may be called at once. */
  concurrency: number;
  /** How many emails may be sent at once, beside that. */
  mailConnections: number;
  /**
   * Sends a delivery, calls `onAnswer` with how long the answer took (permanently, if there was none), and resolves
   * when the result is stored: to whether the receiver took it. Must not throw.
   */
  send: (claim: Claim, onAnswer: (tookMs: number) => void) => Promise<boolean>;
  /** Lets any process claim the delivery again. Must not throw. */
  release: (claim: Claim) => Promise<void>;
  /** Called when there is enough capacity for a further claim, and whether the last delivery was taken. */
  onFreed: (taken: boolean) => void;
};

/**
 * Of a tenant, and in total, those of webhooks. `unproven`: being sent to receivers that had not just answered quickly
 * when it began.
 */
type Counts = { claimed: number; bytes: number; sending: number; unproven: number };

/** `mails`: how many are claimed. */
type Tenant = Counts & { name: string; mails: number };

type Channel = Claim['content']['channel'];

type Receiver = Counts & {
  key: string;
  tenant: Tenant;
  name: string;
  channel: Channel;
  /** How many deliveries it may have claimed. */
  limit: number;
  /** By `performance.now()`. */
  answeredAt: number;
  waiting: { claim: Claim; since: number }[];
};
