import type { ConnectError } from '@connectrpc/connect';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { networkOf, widerNetworksOf } from '../domain/addresses/ip-address.ts';
import { failed } from '../domain/errors/failure.ts';
import { isId } from '../domain/ids.ts';
import { createWindowCounter, type WindowState } from '../domain/limits/window-counter.ts';
import type { Limit } from '../domain/methods.ts';
import type { CallFacts, CountedCall } from './context.ts';

/**
 * Limits how often RPCs are called: those with a limit by client address, and, if `perKey` is set,
 * every call with a key by key. Calls with a key have no other limit.
 */
export function createRateLimits({ countInDatabase, now, perKey }: RateOptions): RateLimits {
  const counter = createWindowCounter({ now });
  const keyLimit: Limit | undefined =
    perKey === undefined ? undefined : { name: 'key', calls: perKey, per: 'minute' };

  return async (own, facts, formId) => {
    const limit = facts.caller?.keyId === undefined ? own : keyLimit;
    if (limit === undefined || (limit.each === 'form' && formId === undefined)) return;
    await count(limit, `${limit.name}:${callerIn(facts, limit, formId)}`, facts);
    if (limit.wider !== true || facts.caller?.keyId !== undefined) return;
    for (const { network, times } of widerNetworksOf(facts.clientAddress)) {
      await count({ ...limit, calls: limit.calls * times }, `${limit.name}:${network}`, facts);
    }
  };

  async function count(limit: Limit, key: string, facts: CallFacts): Promise<void> {
    let call = facts.counted?.find((counted) => counted.key === key);
    if (call === undefined) {
      const state = limit.per === 'minute' ? counter.count(key) : await countInDatabase(key, HOUR_SECONDS);
      call = { limit, key, state };
      facts.counted = [...(facts.counted ?? []), call];
    }
    if (call.state.hits > limit.calls) throw tooMany(call, facts);
  }
}

/**
 * Says in the `ratelimit` and `ratelimit-policy` headers how much is left (the IETF's draft "RateLimit header fields
 * for HTTP") of the limit that leaves the fewest calls, if the request was counted against any.
 */
export function setRateHeaders(header: Headers, { counted = [] }: CallFacts): void {
  const [tightest] = counted.toSorted((a, b) => leftOf(a) - leftOf(b));
  if (tightest === undefined) return;
  const { limit, state } = tightest;
  const window = limit.per === 'minute' ? 60 : HOUR_SECONDS;
  header.set('ratelimit-policy', `"${limit.name}";q=${limit.calls};w=${window}`);
  header.set('ratelimit', `"${limit.name}";r=${leftOf(tightest)};t=${secondsLeft(state)}`);
}

function leftOf({ limit, state }: CountedCall): number {
  return Math.max(0, limit.calls - state.hits);
}

/** Whose calls are counted together. Limits for each form count valid ids alone: made-up names share one count. */
function callerIn({ caller, owner, clientAddress }: CallFacts, { each }: Limit, formId = ''): string {
  if (each === 'owner') return owner?.address ?? '';
  const counted = each === 'form' && isId('form', formId) ? formId : '';
  return caller?.keyId ?? `${counted}:${networkOf(clientAddress)}`;
}

function tooMany({ limit, state }: CountedCall, facts: CallFacts): ConnectError {
  const message = `Too many calls: at most ${limit.calls} a ${limit.per}`;
  const error = failed(Reason.RATE_LIMITED, message, { retryAfter: secondsLeft(state) });
  setRateHeaders(error.metadata, facts);
  return error;
}

function secondsLeft(state: WindowState): number {
  return Math.max(1, Math.ceil(state.endsInMs / 1000));
}

const HOUR_SECONDS = 3600;

/**
 * Counts one call under `key` in a window of `seconds` that holds over any number of processes, and returns
 * how many there were in it, this one included.
 */
type CountInDatabase = (key: string, seconds: number) => Promise<WindowState>;

/**
 * Counts a request once against the limit of a call, and throws RATE_LIMITED if there were too many. Without `formId`,
 * which the message names, limits for each form don't count yet.
 */
export type RateLimits = (
  limit: Limit | undefined,
  facts: CallFacts,
  formId: string | undefined,
) => Promise<void>;

export type RateOptions = {
  countInDatabase: CountInDatabase;
  now: () => number;
  /** The most calls a minute with one key; undefined: any number. */
  perKey: number | undefined;
};
