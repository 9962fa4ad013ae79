import { z } from 'zod';
import { newToken, type SecretKey, signLink, verifyLink } from './secrets.ts';

/**
 * A new token of a mailed link by which an address signs in. `now` is in milliseconds; the token works for 15
 * minutes. No two are the same, so that the use of one can be noted.
 */
export function signInToken(key: SecretKey, address: string, now: number): string {
  return signLink(key, PURPOSE, JSON.stringify([address, newToken()]), now + SIGN_IN_LINK_MS);
}

/** The address that a token of `signInToken` signs in, if it was made with one of the keys and is not expired. */
export function readSignInToken(
  keys: readonly SecretKey[],
  token: string,
  now: number,
): { ok: true; address: string } | { ok: false; reason: 'invalid' | 'expired' } {
  const result = verifyLink(keys, PURPOSE, token, now);
  if (!result.ok) return result;
  const [address] = claims.parse(JSON.parse(result.value));
  return { ok: true, address };
}

/** The address of the page behind a token. `baseUrl` has no slash at the end. */
export function signInUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/owner/sign-in/${token}`;
}

/** How long a link works. */
export const SIGN_IN_LINK_MS = 15 * 60 * 1000;

const PURPOSE = 'owner-sign-in';

const claims = z.tuple([z.string(), z.string()]);
