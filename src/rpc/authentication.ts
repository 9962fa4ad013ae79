import type { ContextValues, Interceptor } from '@connectrpc/connect';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { holds } from '../domain/scopes.ts';
import { accessLineKey, noteCaller } from '../telemetry/access-log.ts';
import { type Access, accessOf } from './authorization.ts';
import {
  bearerOf,
  type Caller,
  callerKey,
  callerOf,
  clientAddressKey,
  type Owner,
  ownerKey,
} from './context.ts';
import { failed } from './errors.ts';
import { contextOfHeader } from './local-transport.ts';
import type { OwnCallersCheck } from './own-callers.ts';

/**
 * Finds out who calls, from the `authorization` header, and refuses who may not call.
 *
 * Another scheme than `Bearer` counts as no key: a proxy may have its own credentials in the header.
 */
export function authenticate(options: AuthenticationOptions): Interceptor {
  return (next) => async (req) => {
    await identify(req.header, req.contextValues, accessOf(req.method), options);
    return next(req);
  };
}

/** Does the same for a call that is known by its headers alone. */
export async function identify(
  header: Headers,
  values: ContextValues,
  access: Access,
  { keys, owners, requireApiKey, checkOwnCaller }: AuthenticationOptions,
): Promise<void> {
  const text = bearerOf(header.get('authorization'));
  if (access.owner !== undefined) {
    if (values.get(ownerKey) === undefined)
      values.set(ownerKey, await ownerBehind(text, access.owner, owners));
  } else if (text !== undefined) {
    const caller = values.get(callerKey) ?? (await keys.find(text, values.get(clientAddressKey)));
    if (caller === undefined) throw failed(Reason.INVALID_KEY, text === '' ? EMPTY_KEY : UNKNOWN_KEY);
    noteCaller(values.get(accessLineKey), caller);
    checkScope(caller, access);
    values.set(callerKey, caller);
  } else if (access.key === 'required') {
    if (access.openWithoutKeys !== true || requireApiKey) {
      throw failed(Reason.MISSING_KEY, 'This call needs an API key: send Authorization: Bearer <key>');
    }
    checkOwnCaller(header, values);
    const caller = await keys.withoutKey();
    noteCaller(values.get(accessLineKey), caller);
    values.set(callerKey, caller);
  }
}

const UNKNOWN_KEY = 'The API key is unknown, expired or revoked';

/** What a shell sends in which the variable of the key is not set. */
const EMPTY_KEY = 'The API key is empty: send Authorization: Bearer <key>';

/** The owner whose session a call has; undefined where it needs none. */
async function ownerBehind(
  text: string | undefined,
  needs: 'required' | 'none',
  owners: OwnerAuthenticator,
): Promise<Owner | undefined> {
  if (text === undefined) {
    if (needs === 'none') return undefined;
    throw failed(Reason.MISSING_KEY, 'This call needs a session of an owner: sign in by a mailed link');
  }
  const owner = needs === 'none' ? undefined : await owners.find(text);
  if (owner === undefined)
    throw failed(Reason.INVALID_KEY, 'This is no session of an owner, or it has ended');
  return owner;
}

/**
 * Tells whose key is in the headers of a caller in this process, who has not said yet what to call. Throws as a call
 * does without a valid key, unless none is required.
 */
export function createIdentification(options: AuthenticationOptions): Identify {
  return async (headers) => {
    const header = new Headers(headers);
    const values = contextOfHeader(header);
    await identify(header, values, { key: 'required', openWithoutKeys: true }, options);
    return callerOf({ values });
  };
}

function checkScope(caller: Caller, { key, scope }: Access): void {
  if (key === 'none' || scope === undefined || holds(caller.scopes, scope)) return;
  throw failed(Reason.INSUFFICIENT_SCOPE, `The API key lacks the scope ${scope}`, { requiredScope: scope });
}

export type Identify = (headers: Record<string, string>) => Promise<Caller>;

/** Finds the owner of a key. */
export type Authenticator = {
  /** The owner of a key; undefined if nobody's, expired or revoked. Throws RATE_LIMITED on guessing. */
  find(text: string, clientAddress: string): Promise<Caller | undefined>;
  /** The caller that stands for calls without a key where none is required. */
  withoutKey(): Promise<Caller>;
};

/** Finds the owner behind a session. */
export type OwnerAuthenticator = {
  /** Whose session this is; undefined if nobody's, ended or expired. */
  find(text: string): Promise<Owner | undefined>;
};

export type AuthenticationOptions = {
  keys: Authenticator;
  owners: OwnerAuthenticator;
  requireApiKey: boolean;
  /** Checks calls without a key, where none is required. */
  checkOwnCaller: OwnCallersCheck;
};
