import type { DescMethod } from '@bufbuild/protobuf';
import { ConnectError, type ContextValues, type Interceptor } from '@connectrpc/connect';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { isLoopback, withOneLoopback } from '../domain/addresses/ip-address.ts';
import { failed, insufficientScope } from '../domain/errors/failure.ts';
import { isStreamToken } from '../domain/links.ts';
import { type Access, isWithinScopes, type Policy, policyOf } from '../domain/methods.ts';
import { noteCaller } from '../telemetry/access-log.ts';
import { bearerOf, type Caller, type CallFacts, factsOf, type Owner } from './context.ts';
import { type RateLimits, setRateHeaders } from './rate-limits.ts';

/**
 * The one question whether a call may be made: who calls and with which scope, how often, and what else may refuse it.
 * The network asks it before a message is received, the gateway before a large body is, and every call once more when
 * its message is known. What it finds out stays with the request, so that it finds it out once.
 */
export function createGate({ authentication, rateLimits, refuse }: GateOptions): Gate {
  return async (method, header, values, formId) => {
    const facts = factsOf({ values });
    const policy = policyOf(method);
    await identify(header, facts, policy, authentication);
    await rateLimits?.(policy.limits, facts, formId);
    refuse(method);
  };
}

/**
 * Asks the gate for each call, and tells in its answer what rates are left. `within` runs what is admitted, now that it
 * is known who calls.
 */
export function throughGate(gate: Gate, within: Within): Interceptor {
  return (next) => async (req) => {
    await gate(req.method, req.header, req.contextValues, req.stream ? undefined : formIdIn(req.message));
    const facts = factsOf({ values: req.contextValues });
    const response = await within(facts, policyOf(req.method), () => next(req)).catch((error: unknown) => {
      if (error instanceof ConnectError) setRateHeaders(error.metadata, facts);
      throw error;
    });
    setRateHeaders(response.header, facts);
    return response;
  };
}

/**
 * Finds out who calls, from the `authorization` header, and throws if they may not make a call with this access.
 *
 * Another scheme than `Bearer` counts as no key: a proxy may have its own credentials in the header.
 */
export async function identify(
  header: Headers,
  facts: CallFacts,
  access: Access,
  { keys, owners, requireApiKey, checkKeylessOrigin }: AuthenticationOptions,
): Promise<void> {
  const text = bearerOf(header.get('authorization'));
  if (access.owner !== undefined) {
    const owner = facts.owner ?? (await ownerBehind(text, access.owner, owners));
    if (owner !== undefined) facts.owner = owner;
  } else if (text !== undefined) {
    const byStreamToken = access.streamTokens === true && isStreamToken(text);
    const caller =
      facts.caller ??
      (await (byStreamToken ? keys.ofStreamToken(text) : keys.find(text, facts.clientAddress)));
    if (caller === undefined) throw failed(Reason.INVALID_KEY, text === '' ? EMPTY_KEY : UNKNOWN_KEY);
    noteCaller(facts.line, caller);
    const { scope = '' } = access;
    if (!isWithinScopes(access, caller.scopes)) {
      throw insufficientScope(scope);
    }
    facts.caller = caller;
  } else if (access.key === 'required') {
    if (access.openWithoutKeys !== true || requireApiKey) {
      throw failed(Reason.MISSING_KEY, 'This call needs an API key: send Authorization: Bearer <key>');
    }
    if (facts.caller !== undefined) return;
    checkKeylessOrigin(header, facts.host);
    facts.caller = await keys.withoutKey();
    noteCaller(facts.line, facts.caller);
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
    throw failed(
      Reason.MISSING_KEY,
      'This call needs a session of an owner: sign in with a link from an email',
    );
  }
  const owner = needs === 'none' ? undefined : await owners.find(text);
  if (owner === undefined)
    throw failed(Reason.INVALID_KEY, 'This is not a session of an owner, or it has ended');
  return owner;
}

/** The form that a message names; undefined if it names none. */
function formIdIn(message: object): string | undefined {
  return 'formId' in message && typeof message.formId === 'string' && message.formId !== ''
    ? message.formId
    : undefined;
}

/** Throws what refuses a call. `formId` is undefined as long as the message is not known, or if it names no form. */
export type Gate = (
  method: DescMethod,
  header: Headers,
  values: ContextValues,
  formId?: string,
) => Promise<void>;

export type GateOptions = {
  authentication: AuthenticationOptions;
  /** Absent where rates are not limited. */
  rateLimits: RateLimits | undefined;
  /** Throws what keeps everybody from calling a method just now. */
  refuse: (method: DescMethod) => void;
};

/** Runs a call for whoever makes it. */
export type Within = <T>(facts: Pick<CallFacts, 'caller' | 'owner'>, policy: Policy, call: () => T) => T;

/** Finds the owner of a key. */
export type Authenticator = {
  /** The owner of a key; undefined if nobody's, expired or revoked. Throws RATE_LIMITED on guessing. */
  find(text: string, clientAddress: string): Promise<Caller | undefined>;
  /** Who has made a token of `CreateStreamToken`. Throws INVALID_TOKEN once it or the key has ended. */
  ofStreamToken(token: string): Promise<Caller>;
  /** The caller that stands for calls without a key where none is required. */
  withoutKey(): Promise<Caller>;
};

/** Finds the owner behind a session. */
type OwnerAuthenticator = {
  /** Whose session this is; undefined if nobody's, ended or expired. */
  find(text: string): Promise<Owner | undefined>;
};

export type AuthenticationOptions = {
  keys: Authenticator;
  owners: OwnerAuthenticator;
  /** False: the RPCs marked `openWithoutKeys` answer without a key, in the default project. */
  requireApiKey: boolean;
  /** Checks calls without a key, where none is required. */
  checkKeylessOrigin: KeylessOriginCheck;
};

/**
 * Makes the check of calls that need no key only because the settings require none. It throws
 * `ORIGIN_NOT_ALLOWED` for what any web page can make its visitor's browser send: calls from another origin, bodies
 * that need no preflight request, and calls to a name that its owner has pointed at this service.
 *
 * `ownUrls` are the service's addresses as its users see them. Callers that are no browsers pass, if the host that
 * they call is loopback or one of these.
 */
export function createKeylessOriginCheck(ownUrls: readonly string[]): KeylessOriginCheck {
  const own = ownUrls.map((url) => new URL(url));
  const ownOrigins = new Set(own.map(({ origin }) => withOneLoopback(origin)));
  const hosts = new Set(own.map(({ hostname }) => hostname));

  return (header, called) => {
    const url = called === undefined ? undefined : urlOf(called);
    if (called !== undefined && !(url && (hosts.has(url.hostname) || isLoopback(url.hostname)))) {
      throw refused(
        'This host may not be called without an API key: it is neither loopback nor that of BASE_URL or HOSTED_URL',
      );
    }
    const origin = header.get('origin');
    const calling = origin === null ? undefined : urlOf(origin.replace(/^https?:\/\//, ''));
    const isSameHost = url && calling && withOneLoopback(calling.host) === withOneLoopback(url.host);
    const isForeign =
      origin === null
        ? header.get('sec-fetch-site') === 'cross-site'
        : !ownOrigins.has(withOneLoopback(origin)) && isSameHost !== true;
    if (isForeign) throw refused('Pages of another origin may not call this without an API key');
    const mediaType = header.get('content-type')?.split(';', 1).join().trim().toLowerCase();
    if (withoutPreflight.has(mediaType ?? 'application/json')) {
      throw refused('Calls without an API key need a body of the media type application/json');
    }
  };
}

/** The address that a `Host` header names; undefined if it is none. */
function urlOf(host: string): URL | undefined {
  const text = `http://${host}`;
  return /^[\w.:[\]-]+$/.test(host) && URL.canParse(text) ? new URL(text) : undefined;
}

/** What a page may send anywhere (Fetch, "CORS-safelisted request-header"), and a body without a media type. */
const withoutPreflight = new Set([
  '',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
]);

function refused(message: string) {
  return failed(Reason.ORIGIN_NOT_ALLOWED, message);
}

/** Throws for calls that a web page could have made. `called` is the host; calls inside the process have none. */
type KeylessOriginCheck = (header: Headers, called: string | undefined) => void;
