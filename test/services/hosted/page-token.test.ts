import { expect, it } from 'vitest';
import { signLink } from '../../../src/domain/links.ts';
import { newSecretKey, parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';
import { issueToken, openToken } from '../../../src/services/hosted/page-token.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

it('the time at which a page was made is proved for 90 days, by the former key too', () => {
  const [key, formerKey] = [parseSecretKey(newSecretKey()), parseSecretKey(newSecretKey())];
  const visit = { token: issueToken(formerKey, 'sess_1', 1000), pageIds: ['sess_1'] };

  expect(openToken([key, formerKey], { ...visit, now: 1000 + 90 * DAY_MS - 1 })?.issuedAt).toBe(1000);
  expect(openToken([key, formerKey], { ...visit, now: 1000 + 90 * DAY_MS })?.issuedAt).toBeUndefined();
  expect(openToken([key], { ...visit, now: 1000 })?.issuedAt).toBeUndefined();
  expect(openToken([formerKey], { ...visit, pageIds: ['sess_2'], now: 1000 })?.issuedAt).toBeUndefined();
});

it('each page has a nonce that its token alone proves', () => {
  const key = parseSecretKey(newSecretKey());
  const [first, second] = [issueToken(key, 'form_1', 1000), issueToken(key, 'form_1', 1000)];
  const visit = { pageIds: ['form_1'], now: 1000 };

  const nonce = openToken([key], { ...visit, token: first })?.nonce;

  expect(nonce).toMatch(/^[\w-]{16}$/);
  expect(openToken([key], { ...visit, token: second })?.nonce).not.toBe(nonce);
  expect(openToken([key], { ...visit, pageIds: ['form_2'], token: first })?.nonce).toBeUndefined();
  expect(openToken([key], { ...visit, token: issueToken(key, 'sess_1', 1000) })?.nonce).toBeUndefined();
  expect(openToken([key], { ...visit, token: first })?.issuedAt).toBe(1000);
});

it('a page of a session that was made before pages had nonces is told apart by its time', () => {
  const key = parseSecretKey(newSecretKey());
  const token = signLink(key, 'issue', 'sess_1:1000', 1000 + DAY_MS);
  const older = signLink(key, 'issue', 'form_1:1000', 1000 + DAY_MS);
  const visit = { pageIds: ['sess_1', 'form_1'], now: 2000 };

  expect(openToken([key], { ...visit, token })?.nonce).toBe('sess_1:1000');
  expect(openToken([key], { ...visit, token })?.issuedAt).toBe(1000);
  expect(openToken([key], { ...visit, token: older })?.nonce).toBeUndefined();
});
