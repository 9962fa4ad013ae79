import { describe, expect, it } from 'vitest';
import { parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';

describe('parseSecretKey', () => {
  it('reads hex, base64 and base64url', () => {
    const bytes = Buffer.alloc(32, 0xfb);

    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      expect(parseSecretKey(` ${bytes.toString(encoding)}\n`)).toEqual(bytes);
    }
  });

  it.each([
    '',
    'short',
    'a'.repeat(64).replace('a', 'g'),
    Buffer.alloc(31).toString('base64'),
    Buffer.alloc(33).toString('hex'),
  ])('refuses %j and says how to make one', (text) => {
    expect(() => parseSecretKey(text)).toThrow(/openssl rand -hex 32/);
  });
});
