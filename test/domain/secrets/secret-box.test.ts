import { describe, expect, it } from 'vitest';
import { SecretBox } from '../../../src/domain/secrets/secret-box.ts';
import { parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';

const key = parseSecretKey('11'.repeat(32));
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
