import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { z } from 'zod';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { connectionCause } from '../../domain/errors/connection-causes.ts';
import { failed } from '../../domain/errors/failure.ts';
import { instants } from '../../domain/limits/limits.ts';
import type { Scope } from '../../domain/scopes.ts';
import type { TokenScopes } from './token-scopes.ts';

/**
 * Checks access tokens of the operator's OpenID provider: JWTs that one of its published keys signed, for this
 * service, and that have not expired. The keys are read when the first token comes, and again every ten minutes.
 *
 * The check returns undefined for text that is no JWT. It throws INVALID_KEY for a token that it refuses, and
 * UNAVAILABLE while the provider can't be reached.
 */
export function createTokenCheck(options: TokenOptions): TokenCheck {
  const { issuer, audience, scopes, now, log } = options;
  const readKeys = createKeyReader(options);
  return async (text) => {
    if (!jwt.test(text)) return undefined;
    const { jwtVerify, errors } = await import('jose');
    try {
      const { payload, protectedHeader } = await jwtVerify(text, await readKeys(), {
        issuer,
        audience,
        algorithms,
        requiredClaims: ['exp', 'sub'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(now()),
      });
      const problem = problemOf(payload, protectedHeader.typ);
      if (problem !== undefined) throw refused(problem);
      const { sub = '', exp = 0 } = payload;
      return { subject: sub, scopes: scopesIn(payload, scopes), expiresAt: new Date(exp * 1000) };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw refused('The access token has expired');
      if (error instanceof errors.JWTClaimValidationFailed) {
        throw refused(`The access token does not fit: ${expected(options)[error.claim] ?? error.message}`);
      }
      if (isTokenError(error, errors)) throw refused("The access token's signature can't be verified");
      if (!isProviderError(error, errors)) throw error;
      const { code, says, advice: hint } = connectionCause(error);
      log.warn(
        { err: error, issuer, ...(code !== '' && { reason: says, hint }) },
        'Could not read the keys of OAUTH_ISSUER; tokens are refused with 503',
      );
      throw failed(Reason.UNAVAILABLE, 'The issuer of access tokens is unreachable');
    }
  };
}

/** Finds the provider's keys by its metadata (OpenID Connect Discovery 1.0), which is read until it was found once. */
function createKeyReader({ issuer, fetch, now }: TokenOptions): () => Promise<JWTVerifyGetKey> {
  let found: Promise<JWTVerifyGetKey> | undefined;
  let readAgainAt = 0;

  async function discover(): Promise<JWTVerifyGetKey> {
    const { createRemoteJWKSet, customFetch } = await import('jose');
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new ProviderError(`${url} answers ${response.status}`);
    const metadata = providerMetadata.parse(await response.json());
    if (metadata.issuer !== issuer) throw new ProviderError(`${url} names the issuer ${metadata.issuer}`);
    const keys = new URL(metadata.jwks_uri);
    if (keys.protocol !== 'https:' && keys.origin !== new URL(issuer).origin) {
      throw new ProviderError(`${url} names keys that are not served by https: ${keys.href}`);
    }
    return createRemoteJWKSet(keys, { timeoutDuration: TIMEOUT_MS, [customFetch]: fetch });
  }

  return () => {
    if (found === undefined || now() >= readAgainAt) {
      readAgainAt = Number.POSITIVE_INFINITY;
      found = discover().catch((error: unknown) => {
        // Strangers can send any number of tokens meanwhile.
        readAgainAt = now() + PAUSE_MS;
        throw error instanceof ProviderError ? error : new ProviderError(String(error), { cause: error });
      });
    }
    return found;
  };
}

const providerMetadata = z.object({ issuer: z.string(), jwks_uri: z.url() });

/** The provider's metadata can't be read, or doesn't fit the settings. */
class ProviderError extends Error {}

function isProviderError(error: unknown, { JOSEError }: JoseErrors): boolean {
  // A failed `fetch` throws a TypeError, which jose passes on.
  return error instanceof ProviderError || error instanceof JOSEError || error instanceof TypeError;
}

/** Whether the token is to blame, and not the provider. */
function isTokenError(error: unknown, errors: JoseErrors): boolean {
  return [
    errors.JWTInvalid,
    errors.JWSInvalid,
    errors.JOSEAlgNotAllowed,
    errors.JOSENotSupported,
    errors.JWKSNoMatchingKey,
    errors.JWKSMultipleMatchingKeys,
    errors.JWSSignatureVerificationFailed,
  ].some((kind) => error instanceof kind);
}

/** What is wrong with a token that the issuer signed for this audience; undefined if nothing is. */
function problemOf(payload: JWTPayload, type = 'JWT'): string | undefined {
  if (!accessTokenTypes.has(type.toLowerCase())) return `The token is no access token but ${type}`;
  // OpenID Connect Core 1.0, section 2: an ID token has the client as its audience, which some providers use here, too.
  if (['nonce', 'at_hash', 'c_hash'].some((claim) => Object.hasOwn(payload, claim))) {
    return 'The token is an ID token: send the access token';
  }
  // RFC 7800: it is worth nothing without proof of its key, which is not checked here.
  if (Object.hasOwn(payload, 'cnf')) return 'The access token is bound to a key: ask for a bearer token';
  if (!subjectPattern.test(payload.sub ?? ''))
    return 'The subject of the access token has no 1 to 200 characters';
  if ((payload.exp ?? 0) * 1000 > instants.lastMs) return 'The access token expires after the year 9999';
  return undefined;
}

/** The scopes of this service that a token holds: `scope` (RFC 9068), or `scp` as Entra and Okta have it. */
function scopesIn({ scope, scp }: JWTPayload, known: TokenScopes): Scope[] {
  const given = [scope, scp].flatMap((claim) => scopeClaim.parse(claim));
  return [...new Set(given.flatMap((name) => known.get(name) ?? []))];
}

const scopeClaim = z.union([z.string().transform((text) => text.split(' ')), z.array(z.string())]).catch([]);

function expected({ issuer, audience }: TokenOptions): Record<string, string> {
  return { iss: `its issuer is not ${issuer}`, aud: `its audience is not ${audience}` };
}

function refused(message: string) {
  return failed(Reason.INVALID_KEY, message);
}

/** Three parts in base64url, the first a JSON object. No key of this service looks so. */
const jwt = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

/** Those by a pair of keys alone: what is published as a public key would verify an HMAC by anybody. */
const algorithms = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

const accessTokenTypes = new Set(['jwt', 'at+jwt', 'application/at+jwt']);

/** It names the caller in the audit log and in answers. */
const subjectPattern = /^[\x21-\x7e]{1,200}$/;

const CLOCK_TOLERANCE_SECONDS = 30;
const TIMEOUT_MS = 5_000;
const PAUSE_MS = 10_000;

type JoseErrors = typeof import('jose').errors;

/** Whose token a text is, if it is one. */
export type TokenCheck = (text: string) => Promise<AccessToken | undefined>;

/** `subject` is the issuer's name for the caller. */
type AccessToken = { subject: string; scopes: readonly Scope[]; expiresAt: Date };

export type TokenOptions = {
  /** As the provider's metadata and tokens have it, to the letter. */
  issuer: string;
  audience: string;
  scopes: TokenScopes;
  fetch: typeof globalThis.fetch;
  /** Milliseconds since 1970. */
  now: () => number;
  log: { warn(facts: object, message: string): void };
};
