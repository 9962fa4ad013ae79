import { type ContextKey, type ContextValues, createContextKey } from '@connectrpc/connect';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../domain/errors/failure.ts';
import type { WindowState } from '../domain/limits/window-counter.ts';
import type { AccessLine } from '../telemetry/access-log.ts';

/**
 * Who makes the call, on RPCs that need a key.
 *
 * Where keys are not required, a call without one acts in the default project and has no `keyId`.
 */
export function callerOf(context: WithValues): Caller {
  const { caller } = factsOf(context);
  if (caller === undefined) throw failed(Reason.MISSING_KEY, 'This call needs an API key');
  return caller;
}

/** Whose session an owner's call has. */
export function ownerOf(context: WithValues): Owner {
  const { owner } = factsOf(context);
  if (owner === undefined) throw failed(Reason.MISSING_KEY, 'This call needs a session of an owner');
  return owner;
}

/** Who makes the call, on RPCs that need no key; undefined without one. */
export function callerIfAny(context: WithValues): Caller | undefined {
  return factsOf(context).caller;
}

/** The address of the client, for limits; `unknown` if there is none, as in calls inside the process. */
export function clientAddressOf(context: WithValues): string {
  return factsOf(context).clientAddress;
}

/** What is known of the request behind a call. A call of this process itself begins with nothing. */
export function factsOf({ values }: WithValues): CallFacts {
  const known = values.get(factsKey);
  if (known !== undefined) return known;
  const facts: CallFacts = { clientAddress: 'unknown' };
  values.set(factsKey, facts);
  return facts;
}

/** The context values to begin the calls of one request with. */
export function contextOf(facts: CallFacts): ContextValues {
  return new CallValues().set(factsKey, facts);
}

const factsKey = createContextKey<CallFacts | undefined>(undefined, { description: 'request' });

/** Connect's own have three functions for each call, which adds up where thousands wait. */
export class CallValues implements ContextValues {
  [id: symbol]: unknown;

  get<T>(key: ContextKey<T>): T {
    // What is under a key was set by it.
    return key.id in this ? (this[key.id] as T) : key.defaultValue;
  }

  set<T>(key: ContextKey<T>, value: T): this {
    this[key.id] = value;
    return this;
  }

  delete(key: ContextKey<unknown>): this {
    delete this[key.id];
    return this;
  }
}

/** The key that an `authorization` header holds; undefined without one, empty if it holds none. */
export function bearerOf(header: string | null): string | undefined {
  const match = header === null ? null : bearer.exec(header);
  return match === null ? undefined : (match[1] ?? '');
}

const bearer = /^bearer(?: +(?! )(.*))?$/i;

/**
 * One request, from the network or from the gateway and the pages for one of theirs. All calls that it makes share
 * this: it is identified once, and counts once against each limit.
 */
export type CallFacts = {
  /** The socket's, or what trusted proxies say: headers are not believed any more after this. */
  clientAddress: string;
  /** The host that was called, and the port if it is named. */
  host?: string | undefined;
  /** The line that is written of the request. */
  line?: AccessLine | undefined;
  /** Set by the gate, as all below. */
  caller?: Caller;
  owner?: Owner;
  counted?: CountedCall[];
};

/** A rate of calls. */
export type Limit = { name: string; calls: number; per: 'minute' | 'hour' };

/** A limit that a request was counted against, for whom, and how often they have called in its window. */
export type CountedCall = { limit: Limit; key: string; state: WindowState };

/** The owner of an API key, as services see it. */
export type Caller = {
  projectId: string;
  /** The project's name. */
  project: string;
  /** Undefined for calls without a key where none is required; `oauth:…` for an access token. */
  keyId: string | undefined;
  /** Whether an access token was shown, which is no key: nobody finds it among those, and it makes none. */
  byToken?: true;
  /** The form whose stream alone it may read, by a token that the key has made. */
  streamOf?: string;
  scopes: readonly string[];
  /** When the key or token ends; absent: never. */
  expiresAt?: Date;
};

/** The owner of forms who is signed in. */
export type Owner = {
  /** As `addressKey` gives it. */
  address: string;
  /** The SHA-256 of the session's token, hex. */
  tokenHash: string;
  signedInAt: Date;
  expiresAt: Date;
};

type WithValues = { readonly values: ContextValues };
