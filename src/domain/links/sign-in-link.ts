import { z } from 'zod';
import { addressKey } from '../addresses/email-address.ts';
import { DAY_MS } from '../durations.ts';
import { newToken } from '../secrets/new-secrets.ts';
import type { SecretKey } from '../secrets/secret-key.ts';
import { signLink, verifyLink } from './signed-link.ts';

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

/**
 * Proves, for a year from `now` in milliseconds, that somebody has signed in with an address and may ask for further
 * links to it. It opens nothing.
 */
export function deviceToken(key: SecretKey, address: string, now: number): string {
  return signLink(key, DEVICE_PURPOSE, addressKey(address), now + DEVICE_MS);
}

/** Whether a token of `deviceToken` is one for an address. */
export function isDeviceOf(
  keys: readonly SecretKey[],
  { token, address, now }: { token: string; address: string; now: number },
): boolean {
  const result = verifyLink(keys, DEVICE_PURPOSE, token, now);
  return result.ok && result.value === addressKey(address);
}

/** How long a link works. */
export const SIGN_IN_LINK_MS = 15 * 60 * 1000;

/** How long a device token works. */
export const DEVICE_MS = 365 * DAY_MS;

const PURPOSE = 'owner-sign-in';
const DEVICE_PURPOSE = 'owner-device';

const claims = z.tuple([z.string(), z.string()]);
