import { describe, expect, it } from 'vitest';
import { pseudonymOf } from '../../../src/domain/secrets/pseudonym.ts';
import { newSecretKey, parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';

const key = parseSecretKey('11'.repeat(32));

describe('pseudonyms', () => {
  it('are the same for the same text under the same key and purpose, and different otherwise', () => {
    const name = pseudonymOf(key, 'client', '192.0.2.1');
    const others = [
      pseudonymOf(key, 'client', '192.0.2.2'),
      pseudonymOf(key, 'other', '192.0.2.1'),
      pseudonymOf(parseSecretKey(newSecretKey()), 'client', '192.0.2.1'),
    ];

    expect(name).toMatch(/^[\w-]{22}$/);
    expect(pseudonymOf(key, 'client', '192.0.2.1')).toBe(name);
    expect(new Set([name, ...others]).size).toBe(4);
  });
});
