import type { DescMethod, Message } from '@bufbuild/protobuf';
import { ConnectError, type ContextValues, createContextKey, type Interceptor } from '@connectrpc/connect';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { networkOf } from '../domain/addresses/client-network.ts';
import { isId } from '../domain/ids.ts';
import { createWindowCounter, type WindowState } from '../domain/limits/window-counter.ts';
import { accessOf, type Limit } from './authorization.ts';
import { callerKey, clientAddressKey, continuationKey, ownerKey } from './context.ts';
import { failed } from './errors.ts';

/**
 * Limits how often RPCs are called: those with a limit by client address, and, if `perKey` is set,
 * every call with a key by key. Calls with a key have no other limit.
 *
 * Says in the `ratelimit` and `ratelimit-policy` headers how much is left (the IETF's draft
 * "RateLimit header fields for HTTP").
 */
export function createRateLimits({ countInDatabase, now, perKey }: RateOptions): RateLimits {
  const counter = createWindowCounter({ now });
  const keyLimit: Limit | undefined =
    perKey === undefined ? undefined : { name: 'key', calls: perKey, per: 'minute' };

  function limitOf(method: DescMethod, values: ContextValues): Limit | undefined {
    return values.get(callerKey)?.keyId === undefined ? accessOf(method).limit : keyLimit;
  }

  /** Counts a call once, and throws if there were too many. */
  async function count(limit: Limit, values: ContextValues, formId: string): Promise<WindowState> {
    const known = values.get(countedKey);
    if (known !== undefined) return known;
    const key = `${limit.name}:${callerIn(values, limit, formId)}`;
    const state = limit.per === 'minute' ? counter.count(key) : await countInDatabase(key, HOUR_SECONDS);
    values.set(countedKey, state);
    if (state.hits > limit.calls) throw tooMany(limit, state);
    return state;
  }

  return {
    async beforeMessage(method, values) {
      const limit = limitOf(method, values);
      if (limit !== undefined && limit.each !== 'form') await count(limit, values, '');
    },
    interceptor: (next) => async (req) => {
      const limit = limitOf(req.method, req.contextValues);
      if (limit === undefined || req.contextValues.get(continuationKey)) return next(req);
      const [formId, call] = await formOf(limit, req);
      const state = await count(limit, req.contextValues, formId);
      const response = await next(call).catch((error: unknown) => {
        if (error instanceof ConnectError) setRateLimitHeaders(error.metadata, limit, state);
        throw error;
      });
      setRateLimitHeaders(response.header, limit, state);
      return response;
    },
  };
}

/** Whose calls are counted together. */
function callerIn(values: ContextValues, limit: Limit, formId: string): string {
  if (limit.each === 'owner') return values.get(ownerKey)?.address ?? '';
  const keyId = values.get(callerKey)?.keyId;
  return keyId ?? `${formId}:${networkOf(values.get(clientAddressKey))}`;
}

/** What a call was counted as, so that it is counted once. */
const countedKey = createContextKey<WindowState | undefined>(undefined, { description: 'counted call' });

/**
 * The form that a call is counted for, which the first message of a stream names, and the call to go on with.
 * Limits for each form count valid ids alone, so that made-up names share one count.
 */
async function formOf(limit: Limit, req: AnyRequest): Promise<[formId: string, req: AnyRequest]> {
  if (limit.each !== 'form') return ['', req];
  const read = req.stream ? await readFirst(req.message) : undefined;
  const message = req.stream ? read?.first : req.message;
  const id = message === undefined ? undefined : formIdIn(message);
  const formId = typeof id === 'string' && isId('form', id) ? id : '';
  return [formId, req.stream && read !== undefined ? { ...req, message: read.all } : req];
}

/** The first of some messages, and all of them to be read once. */
async function readFirst(messages: AsyncIterable<Message>): Promise<FirstMessage> {
  const rest = messages[Symbol.asyncIterator]();
  const first = await rest.next();
  async function* all(): AsyncGenerator<Message> {
    if (first.done === true) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => rest };
  }
  return { first: first.done === true ? undefined : first.value, all: all() };
}

/** The form that a message names; that of an upload lies in its `target`. */
function formIdIn(message: Message): unknown {
  if ('formId' in message) return message.formId;
  const target = 'target' in message ? message.target : undefined;
  const names = typeof target === 'object' && target !== null && 'case' in target && 'value' in target;
  return names && target.case === 'formId' ? target.value : undefined;
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
type FirstMessage = { first: Message | undefined; all: AsyncIterable<Message> };

/**
 * Counts one call under `key` in a window of `seconds` that holds over any number of processes, and returns
 * how many there were in it, this one included.
 */
export type CountInDatabase = (key: string, seconds: number) => Promise<WindowState>;

export type RateLimits = {
  /** Counts a call whose limit does not depend on its message. Throws RATE_LIMITED if there were too many. */
  beforeMessage(method: DescMethod, values: ContextValues): Promise<void>;
  /** Counts the others, and tells in each response what is left. */
  interceptor: Interceptor;
};

export type RateOptions = {
  countInDatabase: CountInDatabase;
  now: () => number;
  /** The most calls a minute with one key; undefined: any number. */
  perKey: number | undefined;
};
