import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto';

/**
 * Returns the headers that prove to a receiver who sent a webhook, and when.
 *
 * `X-Service-Signature` always carries exactly one signature, by `secret`; `webhook-signature` (as Standard Webhooks
 * has it) also lists that of `previousSecret` after a rotation, and that of `signingKey` as `v1a`. `at` is the time
 * of the attempt in milliseconds; `body` is the text that is sent.
 */
export function signWebhook(webhook: WebhookToSign): Record<string, string> {
  const { id, body, at, secret, previousSecret, signingKey } = webhook;
  const seconds = Math.floor(at / 1000);
  const content = `${id}.${seconds}.${body}`;
  const secrets = previousSecret === undefined ? [secret] : [secret, previousSecret];
  const standard = secrets.map((each) => {
    const { key, encoding } = standardKey(each);
    const mac = createHmac('sha256', key, { encoding }).update(content);
    return `v1,${mac.digest('base64')}`;
  });
  if (signingKey !== undefined) {
    standard.push(`v1a,${sign(null, Buffer.from(content), signingKey).toString('base64')}`);
  }
  return {
    'X-Service-Signature': `t=${seconds}, v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`,
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': standard.join(' '),
  };
}

/** How the libraries of Standard Webhooks read a secret: by what follows `whsec_`, or `raw`, as the key itself. */
export function secretFormatOf(secret: string): 'whsec' | 'raw' {
  return standardKey(secret).encoding === 'base64' ? 'whsec' : 'raw';
}

/** A new Ed25519 key that signs webhooks, as `signingKeyOf` reads it. */
export function newSigningKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  return privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}

/** The key in a text that `newSigningKey` has made. */
export function signingKeyOf(text: string): KeyObject {
  return createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' });
}

/** What receivers check its signatures by, as Standard Webhooks writes it: `whpk_` and 32 bytes in base 64. */
export function publicKeyOf(text: string): string {
  const { x = '' } = createPublicKey(signingKeyOf(text)).export({ format: 'jwk' });
  return `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;
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
  signingKey?: KeyObject | undefined;
};
