import type { Claim } from '../../store/deliveries/claimed.ts';
import type { FreeCapacity } from '../../store/deliveries/fairness.ts';
import {
  type Channel,
  type Counts,
  INITIAL_LIMIT,
  isQuick,
  noCounts,
  type Receiver,
  Receivers,
  type Tenant,
} from './receivers.ts';

/**
 * Holds the deliveries that this process has claimed, and sends as many of them at once as may be. A claim
 * waits for its receiver, is sent, and has ended when its result is stored. Or it is released, for any process to claim
 * again: if it has waited too long, its receiver has turned slow, its bytes are too many, or the process stops.
 *
 * It is fair to tenants (projects, and apart from them their forms made without a key), then to receivers, which take
 * turns:
 *
 * - A receiver has at most half of the concurrency, and of that as much as it is trusted with: see `Receivers`.
 * - A tenant has at most half while others have deliveries too.
 * - Receivers whose last answer was not quick, or that are not known, have at most half together, those of one tenant
 *   a quarter. The rest is free for receivers that have just answered.
 * - Emails have connections of their own, and no more are claimed than these can send at once. They can take minutes, and
 *   are no part of the concurrency: no webhook waits for them, nor they for webhooks.
 */
export class ProcessCapacity {
  readonly #options: CapacityOptions;
  readonly #most: ReturnType<typeof boundsOf>;
  readonly #receivers: Receivers;
  /** Of the webhooks of all tenants. Only `#count` changes these, those of tenants and those of receivers. */
  readonly #total: Counts = noCounts();
  /** Those that have something claimed, by name, and their receivers: `#claimFor` adds them, `#end` removes them. */
  readonly #tenants = new Map<string, Tenant>();
  readonly #active = new Set<Receiver>();
  /** Those that have something waiting, in the order of their turns. `add` and answers add to it, `#dispatch` takes. */
  readonly #ready = { webhook: new Set<Receiver>(), mail: new Set<Receiver>() };
  /** What is left to do for claims, until they have ended. Only `#end` changes it. */
  readonly #underWay = new Set<Promise<void>>();
  /** Set by `stop`. */
  #isStopped = false;

  constructor(options: CapacityOptions) {
    this.#options = options;
    this.#most = boundsOf(options.concurrency);
    this.#receivers = new Receivers(this.#most.claimed);
  }

  /** How many more deliveries may be claimed. */
  free(): FreeCapacity & { total: number } {
    const most = this.#most;
    const inUse = new Map([...this.#tenants.values()].map((tenant) => [tenant, { unproven: 0, mails: 0 }]));
    let mails = 0;
    for (const receiver of this.#active) {
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
    const bytes = Math.max(0, MAX_CLAIMED_BYTES - this.#total.bytes);
    return {
      total: bytes === 0 ? 0 : Math.max(0, most.claimed - this.#total.claimed),
      bytes,
      mails: Math.max(0, this.#options.mailConnections - mails),
      perReceiver: INITIAL_LIMIT,
      perTenant: most.claimedOfTenant,
      perTenantUnknown: most.claimedUnproven,
      receivers: [...new Set([...this.#receivers.named(), ...this.#active])].map((receiver) => ({
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
  }

  /** `since`: when their leases began, or earlier, by `performance.now()`; by default now. */
  add(claims: Claim[], since = performance.now()): void {
    for (const claim of claims) {
      const receiver = this.#claimFor(claim);
      if (this.#isStopped || this.#total.bytes > 2 * MAX_CLAIMED_BYTES) this.#release(receiver, claim);
      else {
        receiver.waiting.push({ claim, since });
        this.#ready[receiver.channel].add(receiver);
      }
    }
    this.#dispatch('mail');
    this.#dispatch('webhook');
  }

  /** Releases what is not being sent, from now on at once, and waits until nothing is claimed any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const receiver of this.#active) this.#releaseWaiting(receiver);
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** The receiver of a claim, which counts there from now on. */
  #claimFor(claim: Claim): Receiver {
    const { tenant: name, receiver: receiverName, content } = claim;
    const tenant = this.#tenants.get(name) ?? { name, mails: 0, ...noCounts() };
    this.#tenants.set(name, tenant);
    const receiver = this.#receivers.of(tenant, receiverName, content.channel);
    this.#active.add(receiver);
    this.#count(receiver, 'claimed', 1);
    this.#count(receiver, 'bytes', bytesOf(claim));
    return receiver;
  }

  #count(receiver: Receiver, what: keyof Counts, change: number): void {
    receiver[what] += change;
    if (receiver.channel === 'webhook')
      for (const counts of [receiver.tenant, this.#total]) counts[what] += change;
    else if (what === 'claimed') receiver.tenant.mails += change;
  }

  #dispatch(channel: Channel): void {
    const ready = this.#ready[channel];
    for (const receiver of ready) {
      if (channel === 'webhook' && this.#total.sending >= this.#options.concurrency) return;
      const isAtLimit = receiver.sending >= Math.min(this.#most.ofReceiver, receiver.limit);
      if (isAtLimit || receiver.waiting.length === 0) ready.delete(receiver);
      // A receiver that may not start because of others keeps its turn until something is answered.
      if (isAtLimit || !this.#mayStart(receiver)) continue;
      const next = receiver.waiting.shift();
      if (next === undefined) continue;
      if (performance.now() - next.since > LONGEST_WAIT_MS[channel]) this.#release(receiver, next.claim);
      else this.#start(receiver, next.claim);
      ready.delete(receiver);
      ready.add(receiver);
    }
  }

  /** Whether the others leave something to a receiver that is below its limit. */
  #mayStart(receiver: Receiver): boolean {
    const { channel, tenant } = receiver;
    if (channel === 'mail') return true;
    const isTenantFull = tenant.sending >= this.#most.ofTenant;
    if (isTenantFull && this.#tenants.values().some((other) => other !== tenant && other.claimed > 0))
      return false;
    if (isQuick(receiver)) return true;
    return this.#total.unproven < this.#most.unproven && tenant.unproven < this.#most.unprovenOfTenant;
  }

  #start(receiver: Receiver, claim: Claim): void {
    const { channel } = receiver;
    const unproven = channel === 'mail' || isQuick(receiver) ? 0 : 1;
    this.#count(receiver, 'sending', 1);
    this.#count(receiver, 'unproven', unproven);
    const onAnswer = (tookMs: number) => {
      this.#count(receiver, 'sending', -1);
      this.#count(receiver, 'unproven', -unproven);
      const isSlow = this.#receivers.learn(receiver, tookMs);
      // Its deliveries would outlast their leases.
      if (isSlow) this.#releaseWaiting(receiver);
      if (receiver.waiting.length > 0) this.#ready[channel].add(receiver);
      this.#dispatch(channel);
    };
    this.#end(receiver, claim, this.#options.send(claim, onAnswer));
  }

  #releaseWaiting(receiver: Receiver): void {
    for (const { claim } of receiver.waiting.splice(0)) this.#release(receiver, claim);
  }

  #release(receiver: Receiver, claim: Claim): void {
    const released = this.#options.release(claim).then(() => false);
    this.#end(receiver, claim, released);
  }

  /** Counts a claim as ended after the work that is left to do for it. */
  #end(receiver: Receiver, claim: Claim, work: Promise<boolean>): void {
    const ended = work.then((isTaken) => {
      const { tenant } = receiver;
      this.#underWay.delete(ended);
      this.#count(receiver, 'claimed', -1);
      this.#count(receiver, 'bytes', -bytesOf(claim));
      if (receiver.claimed === 0) this.#active.delete(receiver);
      if (tenant.claimed + tenant.mails === 0) this.#tenants.delete(tenant.name);
      const { claimed, claimedOfTenant } = this.#most;
      const isFree = tenant.claimed <= claimedOfTenant / 2 && receiver.claimed <= receiver.limit / 2;
      if (this.#total.claimed <= claimed / 2 && isFree) this.#options.onFreed(isTaken);
    });
    this.#underWay.add(ended);
  }
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
