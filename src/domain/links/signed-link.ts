import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey, type SecretKey } from '../secrets/secret-key.ts';

/**
 * A token that carries `value` and proves that this service gave it out, for a mailed or shown link.
 *
 * Tokens of one purpose are worth nothing for another. The value can be read by whoever holds the
 * token. `expiresAt` is in milliseconds since 1970; null never expires.
 */
export function signLink(key: SecretKey, purpose: string, value: string, expiresAt: number | null): string {
  const expiry = expiresAt === null ? '' : Math.floor(expiresAt).toString(36);
  const claim = `${Buffer.from(value).toString('base64url')}.${expiry}`;
  return `${claim}.${linkMac(key, purpose, claim).toString('base64url')}`;
}

/**
 * Reads a token of `signLink`, signed with any of the keys. `now` is in milliseconds; a token is expired from
 * `expiresAt` on.
 */
export function verifyLink(
  keys: readonly SecretKey[],
  purpose: string,
  token: string,
  now: number,
): LinkResult {
  const [value = '', expiry = '', mac = '', ...rest] = token.split('.');
  const given = Buffer.from(mac, 'base64url');
  const isSignedWith = (key: SecretKey) => {
    const expected = linkMac(key, purpose, `${value}.${expiry}`);
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  if (rest.length > 0 || !keys.some(isSignedWith)) return { ok: false, reason: 'invalid' };
  if (expiry !== '' && now >= Number.parseInt(expiry, 36)) return { ok: false, reason: 'expired' };
  return { ok: true, value: Buffer.from(value, 'base64url').toString('utf8') };
}

function linkMac(key: SecretKey, purpose: string, claim: string): Buffer {
  return createHmac('sha256', deriveKey(key, `link:${purpose}`))
    .update(claim)
    .digest();
}

export type LinkResult = { ok: true; value: string } | { ok: false; reason: 'invalid' | 'expired' };
