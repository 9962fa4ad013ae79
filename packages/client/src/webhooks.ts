/**
 * Verifies that a webhook comes from the service, and returns its event.
 *
 * `body` is the request's body as it came, before it is parsed. `secrets` are those of the webhook: `whsec_…`, or a
 * text of your own; during a rotation both. Throws `WebhookError` if no signature fits, or if the request is older than
 * `toleranceSeconds` (300).
 */
export async function verifyWebhook({
  body,
  headers,
  secret,
  toleranceSeconds = 300,
  now = Date.now(),
}: WebhookToVerify): Promise<WebhookEvent> {
  const read = headers instanceof Headers ? (name: string) => headers.get(name) : readerOf(headers);
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(read);
  if (!id || !timestamp || !signatures) throw new WebhookError('The request has no signature');
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookError('The request is too old, or the clocks differ');
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const given = signatures
    .split(' ')
    .flatMap((each) => (each.startsWith('v1,') ? [fromBase64(each.slice(3))] : []));
  for (const one of [secret].flat()) {
    const key = await importKey(one);
    for (const mac of given) {
      // Compares in constant time.
      if (mac !== undefined && (await crypto.subtle.verify('HMAC', key, mac, signed))) {
        return JSON.parse(new TextDecoder().decode(bytes));
      }
    }
  }
  throw new WebhookError('The signature does not fit');
}

function importKey(secret: string): Promise<CryptoKey> {
  const encoded = secret.startsWith('whsec_') ? fromBase64(secret.slice('whsec_'.length)) : undefined;
  const bytes = encoded ?? new TextEncoder().encode(secret);
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

/** The bytes of base64; undefined for a text that is none. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return undefined;
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function readerOf(headers: Record<string, string | string[] | undefined>) {
  const values = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name: string) => [values.get(name)].flat()[0] ?? null;
}

/** A request that is not to be believed. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
}

export type WebhookToVerify = {
  body: string | Uint8Array;
  /** Those of a `Request`, or of Node's `IncomingMessage`. */
  headers: Headers | Record<string, string | string[] | undefined>;
  secret: string | readonly string[];
  toleranceSeconds?: number;
  /** Milliseconds; for tests. */
  now?: number;
};

/** What the body of a webhook without a template is. */
export type WebhookEvent = {
  id: string;
  event: string;
  createdAt: string;
  data: Record<string, unknown>;
};
