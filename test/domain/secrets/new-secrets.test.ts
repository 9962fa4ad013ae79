import { describe, expect, it } from 'vitest';
import {
  hashSecret,
  newApiKey,
  newToken,
  newWebhookSecret,
} from '../../../src/domain/secrets/new-secrets.ts';
import { newSecretKey, parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';

describe('new secrets', () => {
  it('have their documented shapes', () => {
    expect(newApiKey()).toMatch(/^hfs_[0-9A-Za-z]{43}$/);
    expect(newToken()).toMatch(/^[0-9A-Za-z]{43}$/);
    expect(newWebhookSecret()).toMatch(/^whsec_[0-9A-Za-z+/]{32}$/);
    expect(parseSecretKey(newSecretKey())).toHaveLength(32);
  });

  it('are never the same twice', () => {
    expect(new Set(Array.from({ length: 1000 }, newApiKey)).size).toBe(1000);
  });

  it('are stored as their SHA-256', () => {
    expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
