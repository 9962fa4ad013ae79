import { checkWebhookUrl } from '../../domain/addresses/public-address.ts';
import { signWebhook } from '../../domain/delivery/signature.ts';
import { sentBody } from '../../domain/events/bodies.ts';
import { effectsOf } from '../../domain/events/index.ts';
import type { Claim, ClaimedWebhook, WebhookContent } from '../../store/deliveries/claim.ts';
import { countCall } from '../../store/rate-limits.ts';
import { secretsAt } from '../../store/webhooks/webhook-secrets.ts';
import { currentTraceparent } from '../../telemetry/trace-context.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/attempt.ts';
import { openWebhookClient, type WebhookTarget } from './client.ts';

/** Opens what sends webhooks: signed, and only where and as often as is still allowed. */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { database, secrets, settings, now } = options;
  const client = openWebhookClient({
    ...options,
    countCall: (key, seconds) => countCall(database, key, seconds),
  });
  const openSecret = cached((sealed) => secrets.open(sealed));
  const targetOf = cached((url) => allowedTarget(url, settings));

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
      const target = targetOf(url);
      if (target === null) return { outcome: 'dropped', error: 'The URL may not be called.' };
      const { keyless } = webhook;
      const body = sentBody(stored);
      return client.post({ target, headers: headersOf(content, webhook, body), body, keyless }, signal);
    },
    close: () => client.close(),
  };
}

/** Where a URL leads; null if it may not be called: the settings can have changed since it was registered. */
function allowedTarget(url: string, settings: { allowPrivate: boolean }): WebhookTarget | null {
  if (checkWebhookUrl(url, settings) !== undefined) return null;
  const { origin, pathname, search } = new URL(url);
  return { origin, path: `${pathname}${search}` };
}

/** Makes something of a text, and keeps a bounded number of what was made. */
function cached<Made>(make: (text: string) => Made): (text: string) => Made {
  const known = new Map<string, Made>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = make(text);
    if (known.size >= MAX_CACHED) known.clear();
    known.set(text, made);
    return made;
  };
}

/** A few MB at most. */
const MAX_CACHED = 10_000;

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
