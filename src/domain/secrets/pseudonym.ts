import { createHmac } from 'node:crypto';
import { deriveKey, type SecretKey } from './secret-key.ts';

/**
 * A short name for something personal, such as a client's address, to compare and count by: the same for the same
 * text under the same key, and without the key nobody can tell what it stands for.
 */
export function pseudonymOf(key: SecretKey, purpose: string, text: string): string {
  const mac = createHmac('sha256', deriveKey(key, `pseudonym:${purpose}`))
    .update(text)
    .digest();
  return mac.subarray(0, PSEUDONYM_BYTES).toString('base64url');
}

/** Long enough that no two share one. */
const PSEUDONYM_BYTES = 16;
