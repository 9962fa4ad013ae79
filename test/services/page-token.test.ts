import { expect, it } from 'vitest';
import { newSecretKey, parseSecretKey } from '../../src/domain/secrets.ts';
import { issuedAt, issueToken } from '../../src/services/hosted/page-token.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

it('the time at which a page was made is proved for 90 days, by the former key too', () => {
  const [key, formerKey] = [parseSecretKey(newSecretKey()), parseSecretKey(newSecretKey())];
  const visit = { token: issueToken(formerKey, 'sess_1', 1000), sessionId: 'sess_1' };

  expect(issuedAt([key, formerKey], { ...visit, now: 1000 + 90 * DAY_MS - 1 })).toBe(1000);
  expect(issuedAt([key, formerKey], { ...visit, now: 1000 + 90 * DAY_MS })).toBeUndefined();
  expect(issuedAt([key], { ...visit, now: 1000 })).toBeUndefined();
  expect(issuedAt([formerKey], { ...visit, sessionId: 'sess_2', now: 1000 })).toBeUndefined();
});
