import { ConnectError, type Interceptor } from '@connectrpc/connect';
import ipaddr from 'ipaddr.js';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { isId } from '../domain/ids.ts';
import { createWindowCounter, type WindowState } from '../domain/window-counter.ts';
import { accessOf, type Limit } from './authorization.ts';
import { callerKey, clientAddressKey } from './context.ts';
import { failed } from './errors.ts';

/**
 * Limits how often RPCs are called: those with a limit by client address, and, if `perKey` is set,
 * every call with a key by key. Calls with a key have no other limit.
 *
 * Says in the `ratelimit` and `ratelimit-policy` headers how much is left (the IETF's draft
 * "RateLimit header fields for HTTP").
 */
export function limitRates({ countInDatabase, now, perKey }: RateOptions): Interceptor {
  const counter = createWindowCounter({ now });
  const keyLimit: Limit | undefined =
    perKey === undefined ? undefined : { name: 'key', calls: perKey, per: 'minute' };

  async function count(limit: Limit, key: string): Promise<WindowState> {
    return limit.per === 'minute' ? counter.count(key) : countInDatabase(key, HOUR_SECONDS);
  }

  return (next) => async (req) => {
    const keyId = req.contextValues.get(callerKey)?.keyId;
    const limit = keyId === undefined ? accessOf(req.method).limit : keyLimit;
    if (limit === undefined) return next(req);

    const key =
      keyId === undefined
        ? `${limit.name}:${formOf(limit, req)}:${networkOf(req.contextValues.get(clientAddressKey))}`
        : `${limit.name}:${keyId}`;
    const state = await count(limit, key);
    if (state.hits > limit.calls) throw tooMany(limit, state);
    const response = await next(req).catch((error: unknown) => {
      if (error instanceof ConnectError) setRateLimitHeaders(error.metadata, limit, state);
      throw error;
    });
    setRateLimitHeaders(response.header, limit, state);
    return response;
  };
}

/** Limits for each form go by ids only, so that made-up names share one count. */
function formOf(limit: Limit, req: AnyRequest): string {
  if (limit.each !== 'form' || req.stream || !('formId' in req.message)) return '';
  const { formId } = req.message;
  return typeof formId === 'string' && isId('form', formId) ? formId : '';
}

/** What counts as one client: an IPv4 address, or the /64 that an IPv6 customer has to themselves. */
export function networkOf(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

function tooMany(limit: Limit, state: WindowState): ConnectError {
  const error = failed(Reason.RATE_LIMITED, `Too many calls: at most ${limit.calls} a ${limit.per}`, {
    retryAfter: secondsLeft(state),
  });
  setRateLimitHeaders(error.metadata, limit, state);
  return error;
}

function setRateLimitHeaders(header: Headers, limit: Limit, state: WindowState): void {
  const window = limit.per === 'minute' ? 60 : HOUR_SECONDS;
  const left = Math.max(0, limit.calls - state.hits);
  header.set('ratelimit-policy', `"${limit.name}";q=${limit.calls};w=${window}`);
  header.set('ratelimit', `"${limit.name}";r=${left};t=${secondsLeft(state)}`);
}

function secondsLeft(state: WindowState): number {
  return Math.max(1, Math.ceil(state.endsInMs / 1000));
}

const HOUR_SECONDS = 3600;

type AnyRequest = Parameters<ReturnType<Interceptor>>[0];

/**
 * Counts one call under `key` in a window of `seconds` that holds over any number of processes, and tells how
 * many there were in it, this one included.
 */
export type CountInDatabase = (key: string, seconds: number) => Promise<WindowState>;

export type RateOptions = {
  countInDatabase: CountInDatabase;
  now: () => number;
  /** The most calls a minute with one key; undefined: any number. */
  perKey: number | undefined;
};
