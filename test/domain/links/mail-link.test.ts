import { describe, expect, it } from 'vitest';
import { mailLinkToken, readMailLink } from '../../../src/domain/links/mail-link.ts';
import { newSecretKey, parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';

const key = parseSecretKey(newSecretKey());
const link = { purpose: 'confirm-owner', formId: 'form_1', address: 'ada@example.com' } as const;

describe('a mailed link', () => {
  it('says what it was made for, until it expires', () => {
    const token = mailLinkToken(key, link, 1000);

    expect(readMailLink([key], token, 999)).toEqual({ ok: true, link });
    expect(readMailLink([key], token, 1000)).toEqual({ ok: false, reason: 'expired' });
  });

  it('is worth nothing for another purpose, under another key, or changed', () => {
    const token = mailLinkToken(key, link, null);
    const otherKey = parseSecretKey(newSecretKey());

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
