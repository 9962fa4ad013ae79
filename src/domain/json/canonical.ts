import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** Canonical JSON (RFC 8785): equal values give equal texts. Throws on what JSON can't say. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('Not a JSON value');
  return text;
}

/** The SHA-256 of a value's canonical JSON, in hex: equal for equal definitions, and for a repeated request. */
export function fingerprint(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
