import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Checks a webhook as its receiver does: whether an `X-Service-Signature` header is by this secret, over this body,
 * and no more than five minutes off. `now` is in milliseconds.
 */
export function verifySignature({ header, body, secret, now }: ReceivedWebhook): boolean {
  const [, seconds, hex] = /^t=(\d{1,12}), v1=([0-9a-f]{64})$/.exec(header) ?? [];
  if (seconds === undefined || hex === undefined) return false;
  if (Math.abs(now / 1000 - Number(seconds)) > TOLERANCE_SECONDS) return false;
  const mac = createHmac('sha256', secret).update(`${seconds}.${body}`).digest();
  return timingSafeEqual(Buffer.from(hex, 'hex'), mac);
}

/** The tolerance that Standard Webhooks' libraries have. */
const TOLERANCE_SECONDS = 300;

type ReceivedWebhook = { header: string; body: string; secret: string; now: number };
