import type { ArrivalRate } from './arrival.ts';

/**
 * Bounds the bytes of request bodies that a process holds: those of callers who are not known yet, in total and
 * for each client, and apart from them those of callers with a key, whom strangers must not crowd out.
 */
export function createBodyBudget(limits: BodyLimits = standardLimits): BodyBudget {
  const heldOf = new Map<string, number>();
  let strangers = 0;
  let known = 0;

  function fits(bytes: number, client: string | undefined, isKnown: boolean): boolean {
    if (isKnown) return known + bytes <= limits.knownBytes;
    if (strangers + bytes > limits.strangersBytes) return false;
    return client === undefined || (heldOf.get(client) ?? 0) + bytes <= limits.clientBytes;
  }

  function add(bytes: number, client: string | undefined, isKnown: boolean): void {
    if (isKnown) {
      known += bytes;
      return;
    }
    strangers += bytes;
    if (client === undefined) return;
    const held = (heldOf.get(client) ?? 0) + bytes;
    if (held === 0) heldOf.delete(client);
    else heldOf.set(client, held);
  }

  return {
    open(clientOf) {
      let held = 0;
      let client: string | undefined;
      let isKnown = false;
      return {
        arrival: limits.arrival,
        hold(bytes) {
          if (held === 0 && !isKnown) client = clientOf();
          const all = held === 0 ? BODY_OVERHEAD + bytes : bytes;
          if (!fits(all, client, isKnown)) return false;
          add(all, client, isKnown);
          held += all;
          return true;
        },
        setKnown() {
          if (held === 0) isKnown = true;
        },
        free() {
          if (held === 0) return;
          add(-held, client, isKnown);
          held = 0;
        },
      };
    },
  };
}

/** What a body costs that has hardly begun to arrive: stream, request, response and call. */
const BODY_OVERHEAD = 4 * 1024;

const MIB = 1024 * 1024;

export const standardLimits: BodyLimits = {
  strangersBytes: 64 * MIB,
  // The largest body, an upload by RPC, has 11.
  clientBytes: 16 * MIB,
  knownBytes: 128 * MIB,
  // Twenty seconds of grace as in Apache's mod_reqtimeout. Its 500 bytes a second would let 256 KiB be held
  // for nine minutes; this is a third of what EDGE, the slowest mobile network in use, sends.
  arrival: { graceMs: 20_000, bytesPerSecond: 4 * 1024 },
};

export type BodyBudget = {
  /** An account for the body of one request. `clientOf` is asked at most once: undefined for a trusted proxy. */
  open(clientOf: () => string | undefined): BodyAccount;
};

/** What the body of one request holds, and how fast it must arrive. */
export type BodyAccount = {
  arrival: ArrivalRate;
  /** Counts that many bytes more; returns false, and counts nothing, if they are too many. */
  hold(bytes: number): boolean;
  /** Its caller has shown a key: what is held from now on does not count as strangers'. Before the first byte. */
  setKnown(): void;
  /** Gives everything back. */
  free(): void;
};

export type BodyLimits = {
  strangersBytes: number;
  clientBytes: number;
  knownBytes: number;
  arrival: ArrivalRate;
};
