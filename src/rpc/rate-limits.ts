import { networkOf, widerNetworksOf } from '../domain/addresses/ip-address.ts';
import { limited } from '../domain/errors/failure.ts';
import { createWindowCounter, type WindowState } from '../domain/limits/window-counter.ts';
import { type Limits, unknownForms } from '../domain/methods.ts';
import type { CallFacts, CountedCall, Limit } from './context.ts';

/**
 * Limits how often RPCs are called: without a key by client, by client and form, and in all; by owners each; and, if
 * `perKey` is set, with a key by key. Calls with a key have no other limit.
 */
export function createRateLimits({ countInDatabase, isForm, now, perKey }: RateOptions): RateLimits {
  const counter = createWindowCounter({ now });

  return async (limits, facts, formId) => {
    const keyId = facts.caller?.keyId;
    if (keyId !== undefined) {
      if (perKey !== undefined) await count({ name: 'key', calls: perKey, per: 'minute' }, keyId, facts);
      return;
    }
    if (limits === undefined) return;
    const { name, per } = limits;
    if ('owner' in limits) {
      await count({ name, per, calls: limits.owner }, facts.owner?.address ?? '', facts);
      return;
    }
    const client = networkOf(facts.clientAddress);
    const { client: calls, form, total, wider } = limits;
    await count({ name: form === undefined ? name : `${name}-client`, calls, per }, client, facts);
    for (const { network, times } of wider ? widerNetworksOf(facts.clientAddress) : []) {
      await count({ name: `${name}-network`, calls: calls * times, per }, network, facts);
    }
    await count({ name: `${name}-total`, calls: total, per: 'minute' }, '', facts);
    if (form === undefined || formId === undefined) return;
    if (await isForm(formId)) await count({ name, calls: form, per }, `${formId}:${client}`, facts);
    else await count(unknownForms, client, facts);
  };

  async function count(limit: Limit, whose: string, facts: CallFacts): Promise<void> {
    const key = `${limit.name}:${whose}`;
    let call = facts.counted?.find((counted) => counted.key === key);
    if (call === undefined) {
      const state = limit.per === 'minute' ? counter.count(key) : await countInDatabase(key, HOUR_SECONDS);
      call = { limit, key, state };
      facts.counted = [...(facts.counted ?? []), call];
    }
    if (call.state.hits <= limit.calls) return;
    const message = `Too many calls: at most ${limit.calls} a ${limit.per}`;
    const error = limited(limit.name, message, secondsLeft(call.state));
    setRateHeaders(error.metadata, facts);
    throw error;
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
 * Counts a request once against the limits of a call, and throws RATE_LIMITED if there were too many. Without `formId`,
 * because the message is not known yet or names none, limits for each form don't count.
 */
export type RateLimits = (
  limits: Limits | undefined,
  facts: CallFacts,
  formId: string | undefined,
) => Promise<void>;

export type RateOptions = {
  countInDatabase: CountInDatabase;
  /** Whether there is such a form, of any project and in any status. */
  isForm: (id: string) => boolean | Promise<boolean>;
  now: () => number;
  /** The most calls a minute with one key; undefined: any number. */
  perKey: number | undefined;
};
