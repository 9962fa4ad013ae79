import { describe, expect, it } from 'vitest';
import {
  newSecretKey,
  parseSecretKey,
  pseudonymOf,
  SecretBox,
} from '../../../src/domain/secrets/secret-key.ts';

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

const otherKey = parseSecretKey('22'.repeat(32));

describe('SecretBox', () => {
  it('opens what it sealed, and seals the same text differently each time', () => {
    const box = new SecretBox(key);

    const sealed = box.seal('whsec_ä');

    expect(sealed).not.toContain('whsec');
    expect(box.seal('whsec_ä')).not.toBe(sealed);
    expect(new SecretBox(key).open(sealed)).toBe('whsec_ä');
    expect(box.open(box.seal(''))).toBe('');
  });

  it('says so when the key is another one', () => {
    const sealed = new SecretBox(key).seal('secret');

    expect(() => new SecretBox(otherKey).open(sealed)).toThrow(/SECRET_KEY is not the one/);
  });

  it('refuses what was changed or is of another format', () => {
    const box = new SecretBox(key);
    const bytes = Buffer.from(box.seal('secret').slice(box.prefix.length), 'base64url');

    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(() => box.open(`${box.prefix}${changed.toString('base64url')}`)).toThrow();
    }
    for (const text of ['', 'v1.', 'v2.AAAA', 'v3.AAAA', 'secret', `${box.prefix}${'A'.repeat(30)}`]) {
      expect(() => box.open(text)).toThrow(/format/);
    }
  });

  it('opens what was sealed under the previous key, and seals under the current one alone', () => {
    const old = new SecretBox(otherKey);
    const box = new SecretBox(key, otherKey);

    const sealed = box.seal('new');

    expect(box.open(old.seal('old'))).toBe('old');
    expect(new SecretBox(key).open(sealed)).toBe('new');
    expect(() => old.open(sealed)).toThrow(/SECRET_KEY is not the one/);
    expect([sealed.startsWith(box.prefix), old.seal('').startsWith(box.prefix)]).toEqual([true, false]);
  });

  it('opens what was sealed before keys had names', () => {
    const unnamed = new SecretBox(otherKey).seal('secret').replace(/^v2\.\w{8}/, 'v1');

    expect(new SecretBox(otherKey).open(unnamed)).toBe('secret');
    expect(new SecretBox(key, otherKey).open(unnamed)).toBe('secret');
    expect(() => new SecretBox(key).open(unnamed)).toThrow(/SECRET_KEY is not the one/);
  });
});
