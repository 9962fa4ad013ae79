import { checkWebhookUrl } from '../../domain/delivery/public-address.ts';
import { signWebhook } from '../../domain/delivery/signature.ts';
import { sentBody } from '../../domain/events/bodies.ts';
import { effectsOf } from '../../domain/events/index.ts';
import type { SecretBox } from '../../domain/secrets.ts';
import type { Claim, ClaimedWebhook, WebhookContent } from '../../store/deliveries/delivery-queue.ts';
import { countCall } from '../../store/rate-limits.ts';
import { secretsAt } from '../../store/webhooks/webhook-secrets.ts';
import { currentTraceparent } from '../../telemetry/trace-context.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/attempt.ts';
import { openWebhookClient } from './client.ts';

/** Opens what sends webhooks: signed, and only where and as often as is still allowed. */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { database, secrets, settings, now } = options;
  const client = openWebhookClient({
    ...options,
    countCall: (key, seconds) => countCall(database, key, seconds),
  });
  const openSecret = createSecretCache(secrets);

  function headersOf({ eventId }: WebhookContent, webhook: ClaimedWebhook, body: string) {
    const at = now();
    const { secret, previousSecret } = secretsAt(webhook, new Date(at));
    const signature = signWebhook({
      id: eventId,
      body,
      at,
      secret: openSecret(secret),
      previousSecret: previousSecret === null ? undefined : openSecret(previousSecret),
    });
    const traceparent = webhook.sendsTraceparent ? currentTraceparent() : undefined;
    return {
      'content-type': 'application/json',
      'user-agent': 'headless-form-service',
      'accept-encoding': 'identity',
      ...signature,
      ...(traceparent !== undefined && { traceparent }),
    };
  }

  return {
    async send(claim, content, signal) {
      const { url, webhook, body: stored } = content;
      if (webhook === null || stored === null) return { outcome: 'dropped', error: 'The event is gone.' };
      if (!webhook.active && effectsOf(claim.kind).webhooks !== 'tested') {
        return { outcome: 'dropped', error: 'The webhook is turned off.' };
      }
      // The settings can have changed since it was registered.
      if (checkWebhookUrl(url, settings) !== undefined) {
        return { outcome: 'dropped', error: 'The URL may not be called.' };
      }
      const { keyless } = webhook;
      const body = sentBody(stored);
      return client.post({ url, headers: headersOf(content, webhook, body), body, keyless }, signal);
    },
    close: () => client.close(),
  };
}

/** Opens sealed secrets, and keeps a bounded number of opened ones. */
function createSecretCache(box: SecretBox): (sealed: string) => string {
  const opened = new Map<string, string>();
  return (sealed) => {
    const known = opened.get(sealed);
    if (known !== undefined) return known;
    const secret = box.open(sealed);
    if (opened.size >= MAX_OPENED) opened.clear();
    opened.set(sealed, secret);
    return secret;
  };
}

/** A few MB at most. */
const MAX_OPENED = 10_000;

export type WebhookSender = {
  /**
   * Posts one delivery, signed at this moment. Throws only if `signal` is aborted or the database fails;
   * whatever the receiver does is an outcome.
   */
  send(claim: Claim, content: WebhookContent, signal: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
};

export type WebhookSenderOptions = Pick<
  DeliveryOptions,
  'database' | 'secrets' | 'settings' | 'now' | 'resolveHost'
>;
