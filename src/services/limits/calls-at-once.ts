import type { HandlerContext } from '@connectrpc/connect';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { limited } from '../../domain/errors/failure.ts';
import { type Caller, clientAddressOf, ownerOf } from '../../rpc/context.ts';

/**
 * Bounds how many calls of a kind go on at once in this process. `what` is the kind in words, such as `streams`, and
 * `boundsOf` tells what a call counts against.
 */
export function limitCallsAtOnce<T>(
  what: string,
  boundsOf: (caller: T) => readonly Bound[],
  { retryAfter = 10 } = {},
): CallsAtOnce<T> {
  // A key with nothing open takes no room.
  const open = new Map<string, number>();

  function count(caller: T, change: 1 | -1): void {
    for (const { key } of boundsOf(caller)) {
      const counted = (open.get(key) ?? 0) + change;
      if (counted === 0) open.delete(key);
      else open.set(key, counted);
    }
  }

  return {
    open: () => open.get(ALL) ?? 0,
    enter(caller) {
      const full = boundsOf(caller).find(({ key, most }) => (open.get(key) ?? 0) >= most);
      if (full !== undefined)
        throw limited(what, `${full.who} ${full.most} ${what} open already`, retryAfter);
      count(caller, 1);
      return new Entered(caller, count);
    },
  };
}

/** Bounds the calls of a kind for each key, for each project and in all. */
export function limitCallersAtOnce(
  what: string,
  { perKey, perProject, total }: CallerLimits,
  options?: { retryAfter: number },
): CallsAtOnce<Caller> {
  const boundsOf = ({ projectId, keyId }: Caller) => [
    {
      key: `${projectId} ${keyId ?? ''}`,
      most: perKey,
      who: keyId === undefined ? 'Callers without a key have' : 'This key has',
    },
    { key: projectId, most: perProject, who: 'This project has' },
    { key: ALL, most: total, who: 'This service has' },
  ];
  return limitCallsAtOnce(what, boundsOf, options);
}

/**
 * Bounds the calls of a kind for each owner, for each client's network, since anybody can own forms by any number of
 * addresses, and in all.
 */
export function limitOwnersAtOnce(
  what: string,
  { perOwner, perClient, total }: OwnerLimits,
): CallsAtOnce<Pick<HandlerContext, 'values'>> {
  const boundsOf = (call: Pick<HandlerContext, 'values'>) => [
    { key: `owner ${ownerOf(call).address}`, most: perOwner, who: 'This owner has' },
    { key: `client ${networkOf(clientAddressOf(call))}`, most: perClient, who: 'Your network has' },
    { key: ALL, most: total, who: 'This service has' },
  ];
  return limitCallsAtOnce(what, boundsOf, { retryAfter: 2 });
}

/** The key that all calls of a kind count against. */
export const ALL = '';

/** A call that counts. Thousands are kept, so it holds little: what it counts against is found anew at its end. */
class Entered<T> implements Disposable {
  readonly #caller: T;
  readonly #count: (caller: T, change: -1) => void;

  constructor(caller: T, count: (caller: T, change: -1) => void) {
    this.#caller = caller;
    this.#count = count;
  }

  [Symbol.dispose](): void {
    this.#count(this.#caller, -1);
  }
}

export type CallsAtOnce<T> = {
  /** How many calls go on that count against `ALL`. */
  open(): number;
  /** Counts a call until it is disposed of. Throws RATE_LIMITED if there are too many. */
  enter(caller: T): Disposable;
};

/** At most so many calls of a key go on. `who` begins the sentence that refuses one more. */
export type Bound = { key: string; most: number; who: string };

type CallerLimits = { perKey: number; perProject: number; total: number };

type OwnerLimits = { perOwner: number; perClient: number; total: number };
