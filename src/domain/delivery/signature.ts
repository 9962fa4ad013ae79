import { createHmac } from 'node:crypto';

/**
 * Returns the headers that prove to a receiver who sent a webhook, and when.
 *
 * `X-Service-Signature` always carries exactly one signature, by `secret`; `webhook-signature` (as
 * Standard Webhooks has it) also lists that of `previousSecret` after a rotation. `at` is the time
 * of the attempt in milliseconds; `body` is the text that is sent.
 */
export function signWebhook({ id, body, at, secret, previousSecret }: WebhookToSign): Record<string, string> {
  const seconds = Math.floor(at / 1000);
  const secrets = previousSecret === undefined ? [secret] : [secret, previousSecret];
  const standard = secrets.map((each) => {
    const { key, encoding } = standardKey(each);
    const mac = createHmac('sha256', key, { encoding }).update(`${id}.${seconds}.${body}`);
    return `v1,${mac.digest('base64')}`;
  });
  return {
    'X-Service-Signature': `t=${seconds}, v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`,
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': standard.join(' '),
  };
}

/**
 * The libraries of Standard Webhooks decode what follows `whsec_`; any other secret is their `raw`.
 *
 * A text with its encoding, since Node takes four times as long for a key that is a `Buffer`.
 */
function standardKey(secret: string): { key: string; encoding: 'base64' | 'utf8' } {
  const encoded = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : '';
  return base64.test(encoded) ? { key: encoded, encoding: 'base64' } : { key: secret, encoding: 'utf8' };
}

const base64 = /^(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export type WebhookToSign = {
  id: string;
  body: string;
  at: number;
  secret: string;
  previousSecret?: string | undefined;
};
