import { createHash, randomBytes } from 'node:crypto';

/** A new API key: `hfs_` and 32 random bytes in base 62. Shown once; stored as its hash. */
export function newApiKey(): string {
  return `hfs_${toBase62(randomBytes(32))}`;
}

/** A new one-time token for a link: 32 random bytes in base 62. */
export function newToken(): string {
  return toBase62(randomBytes(32));
}

/** A new webhook secret in the form of Standard Webhooks: `whsec_` and 24 random bytes in base 64. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

/**
 * The SHA-256 of a secret in hex: what is stored of keys and tokens. Only for secrets of full
 * strength, as made here; it is no password hash.
 */
export function hashSecret(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function toBase62(bytes: Buffer): string {
  let number = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < BASE62_CHARS) {
    text = base62.charAt(Number(number % 62n)) + text;
    number /= 62n;
  }
  return text;
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62^43 is the first power of 62 above 2^256. */
const BASE62_CHARS = 43;
