import { type ContextKey, type ContextValues, createContextKey } from '@connectrpc/connect';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { failed } from './errors.ts';

/**
 * Who makes the call, on RPCs that need a key.
 *
 * Where keys are not required, a call without one acts in the default project and has no `keyId`.
 */
export function callerOf(context: WithValues): Caller {
  const caller = context.values.get(callerKey);
  if (caller === undefined) throw failed(Reason.MISSING_KEY, 'This call needs an API key');
  return caller;
}

/** Whose session an owner's call has. */
export function ownerOf(context: WithValues): Owner {
  const owner = context.values.get(ownerKey);
  if (owner === undefined) throw failed(Reason.MISSING_KEY, 'This call needs a session of an owner');
  return owner;
}

/** Who makes the call, on RPCs that need no key; undefined without one. */
export function callerIfAny(context: WithValues): Caller | undefined {
  return context.values.get(callerKey);
}

/** The address of the client, for limits; `unknown` if there is none, as in calls inside the process. */
export function clientAddressOf(context: WithValues): string {
  return context.values.get(clientAddressKey);
}

/**
 * The context values to begin a call with that came over the network. `clientAddress` is the
 * socket's, or what trusted proxies say: headers are not believed any more after this. `host` is the authority
 * that was called.
 */
export function contextOfClient(clientAddress: string, host?: string): ContextValues {
  return new CallValues().set(clientAddressKey, clientAddress).set(hostKey, host);
}

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

const bearer = /^bearer(?: +(.*))?$/i;

/** Set by the interceptor in authentication.ts. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'caller' });

/** Set by the interceptor in authentication.ts, on the RPCs of owners. */
export const ownerKey = createContextKey<Owner | undefined>(undefined, { description: 'owner' });

/** Set by the server or transport that took the call. */
export const clientAddressKey = createContextKey('unknown', { description: 'client address' });

/** The host, and the port if it is named, that was called. Set as the client's address is. */
export const hostKey = createContextKey<string | undefined>(undefined, { description: 'host' });

/** Set by the transport inside the process: the call counts as one with the call that it goes on from. */
export const continuationKey = createContextKey(false, { description: 'continuation' });

/** The project that the first key, and calls without one, belong to. */
export const DEFAULT_PROJECT = 'default';

/** The owner of an API key, as services see it. */
export type Caller = {
  projectId: string;
  /** The project's name. */
  project: string;
  /** Undefined for calls without a key where none is required. */
  keyId: string | undefined;
  scopes: readonly string[];
};

/** The owner of forms who is signed in. */
export type Owner = {
  /** As `addressKey` gives it. */
  address: string;
  /** The SHA-256 of the session's token, hex. */
  tokenHash: string;
  expiresAt: Date;
};

type WithValues = { readonly values: ContextValues };
