import { hkdfSync, randomBytes } from 'node:crypto';

/** Reads SECRET_KEY: 32 bytes in hex or base 64. Throws an error that says what was wrong. */
export function parseSecretKey(text: string): SecretKey {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return Buffer.from(trimmed, 'hex');
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)) return Buffer.from(trimmed, 'base64');
  throw new Error('expected 32 bytes as 64 hex digits or as base64; make one with: openssl rand -hex 32');
}

/** A new SECRET_KEY in hex, as `parseSecretKey` reads it. */
export function newSecretKey(): string {
  return randomBytes(SECRET_KEY_BYTES).toString('hex');
}

/** One key for each purpose, so that what is made for one can't be used for another; derived once. */
export function deriveKey(key: SecretKey, purpose: string): Buffer {
  const derived = derivedKeys.get(key) ?? new Map<string, Buffer>();
  derivedKeys.set(key, derived);
  const known = derived.get(purpose);
  if (known !== undefined) return known;
  const made = Buffer.from(hkdfSync('sha256', key, '', `headless-form-service:${purpose}`, 32));
  derived.set(purpose, made);
  return made;
}

/** By purpose; there are as many purposes as places in the code that name one. */
const derivedKeys = new WeakMap<SecretKey, Map<string, Buffer>>();

const SECRET_KEY_BYTES = 32;

/** The 32 bytes of SECRET_KEY, as `parseSecretKey` gives them. */
export type SecretKey = Buffer;
