import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signWebhook } from '../../../src/domain/delivery/signature.ts';
import { newWebhookSecret } from '../../../src/domain/secrets/new-secrets.ts';
import { verifySignature } from '../../support/verify-signature.ts';

const body = '{"event":"submission.created","data":{"answers":{"name":"Jürg 👍"}}}';
const at = Date.now();

describe('signWebhook', () => {
  it('signs time and body by the whole text of the secret', () => {
    const headers = signWebhook({ id: 'evt_1', body, at: 1_700_000_000_999, secret: 'whsec_AAAA' });

    const hex = createHmac('sha256', 'whsec_AAAA').update(`1700000000.${body}`).digest('hex');
    expect(headers['X-Service-Signature']).toBe(`t=1700000000, v1=${hex}`);
    expect(headers).toMatchObject({ 'webhook-id': 'evt_1', 'webhook-timestamp': '1700000000' });
  });

  it("is verified by Standard Webhooks' own library", () => {
    const secret = newWebhookSecret();

    const headers = signWebhook({ id: 'evt_1', body, at, secret });

    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
    expect(() => new Webhook(newWebhookSecret()).verify(body, headers)).toThrow();
  });

  it.each(['a plain secret', 'bm90IHByZWZpeGVk', 'whsec_', 'whsec_not base64', 'whsec_AAA', 'Schlüssel'])(
    'keys the library by the bytes of %j, its raw format',
    (secret) => {
      const headers = signWebhook({ id: 'evt_1', body, at, secret });

      const library = new Webhook(new TextEncoder().encode(secret), { format: 'raw' });
      expect(library.verify(body, headers)).toEqual(JSON.parse(body));
    },
  );

  it('also signs by the secret before a rotation, but only for Standard Webhooks', () => {
    const [secret, previousSecret] = [newWebhookSecret(), newWebhookSecret()];

    const headers = signWebhook({ id: 'evt_1', body, at, secret, previousSecret });

    for (const each of [secret, previousSecret]) {
      expect(new Webhook(each).verify(body, headers)).toEqual(JSON.parse(body));
    }
    expect(headers['X-Service-Signature']?.match(/v1=/g)).toHaveLength(1);
    expect(verifySignature({ header: headers['X-Service-Signature'] ?? '', body, secret, now: at })).toBe(
      true,
    );
  });
});

describe('verifySignature', () => {
  const secret = 'a plain secret';
  const header = signWebhook({ id: 'evt_1', body, at, secret })['X-Service-Signature'] ?? '';

  it('accepts what was sent, within five minutes', () => {
    expect(verifySignature({ header, body, secret, now: at + 299_000 })).toBe(true);
  });

  it.each([
    ['another body', { body: `${body} ` }],
    ['another secret', { secret: 'another secret' }],
    ['an old time', { now: at + 302_000 }],
    ['a time to come', { now: at - 302_000 }],
    ['an empty header', { header: '' }],
    ['a changed time', { header: header.replace(/t=\d/, 't=2') }],
    ['two signatures', { header: `${header}, ${header}` }],
  ])('refuses %s', (_, change) => {
    expect(verifySignature({ header, body, secret, now: at, ...change })).toBe(false);
  });
});
