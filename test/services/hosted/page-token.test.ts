import { expect, it } from 'vitest';
import { signLink } from '../../../src/domain/links.ts';
import { newSecretKey, parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';
import { issuedAt, issueToken, nonceOf } from '../../../src/services/hosted/page-token.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

it('the time at which a page was made is proved for 90 days, by the former key too', () => {
  const [key, formerKey] = [parseSecretKey(newSecretKey()), parseSecretKey(newSecretKey())];
  const visit = { token: issueToken(formerKey, 'sess_1', 1000), pageIds: ['sess_1'] };

  expect(issuedAt([key, formerKey], { ...visit, now: 1000 + 90 * DAY_MS - 1 })).toBe(1000);
  expect(issuedAt([key, formerKey], { ...visit, now: 1000 + 90 * DAY_MS })).toBeUndefined();
  expect(issuedAt([key], { ...visit, now: 1000 })).toBeUndefined();
  expect(issuedAt([formerKey], { ...visit, pageIds: ['sess_2'], now: 1000 })).toBeUndefined();
});

it('each page has a nonce that its token alone proves', () => {
  const key = parseSecretKey(newSecretKey());
  const [first, second] = [issueToken(key, 'form_1', 1000), issueToken(key, 'form_1', 1000)];
  const visit = { pageIds: ['form_1'], now: 1000 };

  const nonce = nonceOf([key], { ...visit, token: first });

  expect(nonce).toMatch(/^[\w-]{16}$/);
  expect(nonceOf([key], { ...visit, token: second })).not.toBe(nonce);
  expect(nonceOf([key], { ...visit, pageIds: ['form_2'], token: first })).toBeUndefined();
  expect(nonceOf([key], { ...visit, token: issueToken(key, 'sess_1', 1000) })).toBeUndefined();
  expect(issuedAt([key], { ...visit, token: first })).toBe(1000);
});

it('a page of a session that was made before pages had nonces is told apart by its time', () => {
  const key = parseSecretKey(newSecretKey());
  const token = signLink(key, 'issue', 'sess_1:1000', 1000 + DAY_MS);
  const older = signLink(key, 'issue', 'form_1:1000', 1000 + DAY_MS);
  const visit = { pageIds: ['sess_1', 'form_1'], now: 2000 };

  expect(nonceOf([key], { ...visit, token })).toBe('sess_1:1000');
  expect(issuedAt([key], { ...visit, token })).toBe(1000);
  expect(nonceOf([key], { ...visit, token: older })).toBeUndefined();
});
