import type { Claim } from '../../store/deliveries/claimed.ts';

/**
 * Knows how far each receiver is trusted: with little at first, one more delivery with each quick answer, and one at a
 * time after a slow answer or none.
 */
export class Receivers {
  /** The most that a receiver is trusted with. */
  readonly #most: number;
  /** By tenant and name; who answered last is at the end. `of` adds, and removes those that answered longest ago. */
  readonly #known = new Map<string, Receiver>();
  /** Those that answered last, of those above. `learn` adds. */
  readonly #answered = new Set<Receiver>();

  constructor(most: number) {
    this.#most = most;
  }

  /** The receiver that a tenant has by this name. */
  of(tenant: Tenant, name: string, channel: Channel): Receiver {
    const key = `${tenant.name}\n${name}`;
    const receiver = this.#known.get(key) ?? this.#add({ key, tenant, name, channel });
    receiver.tenant = tenant;
    return receiver;
  }

  /** Trusts a receiver by how long its answer took. Returns whether that was too long. */
  learn(receiver: Receiver, tookMs: number): boolean {
    const isSlow = tookMs >= SLOW_MS;
    receiver.limit = isSlow ? 1 : Math.min(this.#most, receiver.limit + 1);
    receiver.answeredAt = performance.now();
    this.#known.delete(receiver.key);
    this.#known.set(receiver.key, receiver);
    this.#answered.delete(receiver);
    this.#answered.add(receiver);
    const [oldest] = this.#answered;
    if (this.#answered.size > MAX_NAMED && oldest !== undefined) this.#answered.delete(oldest);
    return isSlow;
  }

  /** Those that answered last, which are named to the database. */
  named(): Iterable<Receiver> {
    return this.#answered;
  }

  #add(named: Pick<Receiver, 'key' | 'tenant' | 'name' | 'channel'>): Receiver {
    if (this.#known.size >= MAX_KNOWN) {
      const oldest = this.#known.values().find(({ claimed }) => claimed === 0);
      this.#known.delete(oldest?.key ?? '');
      if (oldest !== undefined) this.#answered.delete(oldest);
    }
    const unknown = { limit: INITIAL_LIMIT, answeredAt: Number.NEGATIVE_INFINITY, waiting: [] };
    const receiver = { ...named, ...unknown, ...noCounts() };
    this.#known.set(receiver.key, receiver);
    return receiver;
  }
}

/** Whether a receiver is trusted, and has answered quickly just now. */
export function isQuick({ limit, answeredAt }: Receiver): boolean {
  return limit > 1 && performance.now() - answeredAt < RECENT_MS;
}

export function noCounts(): Counts {
  return { claimed: 0, bytes: 0, sending: 0, unproven: 0 };
}

/** What a receiver that is not known is trusted with. */
export const INITIAL_LIMIT = 4;

/** A slower receiver takes more than its part of the time. */
const SLOW_MS = 2_000;

/** What an answer says about the next one for: a receiver that goes away with a thousand others is doubted soon. */
const RECENT_MS = 60_000;

/** A few MB. */
const MAX_KNOWN = 10_000;

/** The names of those that answered last are parameters of each claim. */
const MAX_NAMED = 200;

/**
 * Of a tenant, and in total, those of webhooks. `unproven`: being sent to receivers that had not just answered quickly
 * when it began.
 */
export type Counts = { claimed: number; bytes: number; sending: number; unproven: number };

/** `mails`: how many are claimed. */
export type Tenant = Counts & { name: string; mails: number };

export type Channel = Claim['content']['channel'];

export type Receiver = Counts & {
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
