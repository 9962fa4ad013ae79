import { describe, expect, it } from 'vitest';
import { mailLinkToken, readMailLink, signLink, verifyLink } from '../../src/domain/links.ts';
import { parseSecretKey } from '../../src/domain/secrets/secret-key.ts';

const key = parseSecretKey('11'.repeat(32));
const otherKey = parseSecretKey('22'.repeat(32));
const now = Date.parse('2026-11-21T10:00:00.000Z');

describe('signed links', () => {
  it('carry their value until they expire', () => {
    const token = signLink(key, 'stop', 'jo@example.com form_1', now + 1000);

    expect(token).toMatch(/^[\w.-]+$/);
    expect(verifyLink([key], 'stop', token, now + 999)).toEqual({ ok: true, value: 'jo@example.com form_1' });
    expect(verifyLink([key], 'stop', token, now + 1000)).toEqual({ ok: false, reason: 'expired' });
  });

  it('last permanently without expiry', () => {
    expect(verifyLink([key], 'stop', signLink(key, 'stop', '', null), 8.64e15)).toEqual({
      ok: true,
      value: '',
    });
  });

  it('are right if any of the keys signed them', () => {
    const token = signLink(otherKey, 'stop', 'value', null);

    expect(verifyLink([key, otherKey], 'stop', token, now)).toEqual({ ok: true, value: 'value' });
    expect(verifyLink([], 'stop', token, now)).toEqual({ ok: false, reason: 'invalid' });
  });

  it('are worth nothing for another purpose, under another key, or changed', () => {
    const token = signLink(key, 'stop', 'value', now + 1000);
    const [value, , mac] = token.split('.');
    const invalid = { ok: false, reason: 'invalid' };

    expect(verifyLink([key], 'confirm', token, now)).toEqual(invalid);
    expect(verifyLink([otherKey], 'stop', token, now)).toEqual(invalid);
    expect(verifyLink([key], 'stop', `${value}..${mac}`, now)).toEqual(invalid);
    expect(verifyLink([key], 'stop', `${token}.x`, now)).toEqual(invalid);
    for (const text of ['', '.', '..', '...', 'a.b.c', token.slice(0, -2), `x${token}`]) {
      expect(verifyLink([key], 'stop', text, now)).toEqual(invalid);
    }
  });
});

const link = { purpose: 'confirm-owner', formId: 'form_1', address: 'ada@example.com' } as const;

describe('a mailed link', () => {
  it('says what it was made for, until it expires', () => {
    const token = mailLinkToken(key, link, 1000);

    expect(readMailLink([key], token, 999)).toEqual({ ok: true, link });
    expect(readMailLink([key], token, 1000)).toEqual({ ok: false, reason: 'expired' });
  });

  it('is worth nothing for another purpose, under another key, or changed', () => {
    const token = mailLinkToken(key, link, null);

    const forged = [
      token.replace('confirm-owner', 'change-owner'),
      `${token}A`,
      token.slice(0, -2),
      '',
      '.',
      'x',
    ];
    for (const text of forged) {
      expect(readMailLink([key], text, 0)).toEqual({ ok: false, reason: 'invalid' });
    }
    expect(readMailLink([otherKey], token, 0)).toEqual({ ok: false, reason: 'invalid' });
  });

  it('fits into the path of an address as it is', () => {
    const token = mailLinkToken(key, { ...link, address: "o'hara+x/y?z@example.com" }, null);

    expect(encodeURIComponent(token)).toBe(token);
  });
});
