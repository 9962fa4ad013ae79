import { LRUCache } from 'lru-cache';
import { Agent, type Dispatcher } from 'undici';
import { checkWebhookUrl } from '../../domain/addresses/ip-address.ts';
import { PROCESSED_REDIRECTS } from '../../domain/delivery/retry.ts';
import { signingKeyOf, signWebhook } from '../../domain/delivery/signature.ts';
import { headersIn } from '../../domain/delivery/webhook-headers.ts';
import { connectionCause } from '../../domain/errors/connection-causes.ts';
import { effectsOf } from '../../domain/events/index.ts';
import { DatabaseUnavailable, isLocalFault } from '../../store/database/faults.ts';
import type { Claim, ClaimedWebhook, WebhookContent } from '../../store/deliveries/claimed.ts';
import { findNotified } from '../../store/deliveries/find-notified.ts';
import { countCall } from '../../store/rate-limits.ts';
import { secretsAt } from '../../store/webhooks/webhooks.ts';
import { currentTraceparent } from '../../telemetry/trace-context.ts';
import type { DeliveryOptions } from '../options.ts';
import { type Outcome, refused, waits } from '../outcome.ts';
import { BodyTooLarge, webhookBody } from './body.ts';
import { connectorTo, systemResolver } from './connector.ts';
import { READ_MS, type ReceiverAnswer, sendRequest } from './send-request.ts';

/**
 * Opens what sends webhooks: signed, and only where and as often as is still allowed. It follows no redirects, and
 * keeps connections open for a few seconds; `close` ends them.
 *
 * Calls for forms made without a key are limited by the address that they go to, over all such forms, so that
 * those can't be used to flood it. Each has a connection of its own, so that each is counted.
 */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const {
    database,
    secrets,
    settings,
    now,
    openConnector,
    resolveHost: resolve = systemResolver(),
  } = options;
  const connecting = { resolve, allowPrivate: settings.allowPrivate, timeoutMs: TIMEOUT_MS, openConnector };
  const shared = { maxHeaderSize: MAX_HEADERS_BYTES, pipelining: 1, keepAliveTimeout: KEEP_ALIVE_MS };
  const agent = new Agent({ ...shared, connect: connectorTo(connecting) });
  async function admit(address: string): Promise<void> {
    const { hits, endsInMs } = await countCall(database, `webhook:${address}`, 60);
    if (hits > KEYLESS_CALLS_A_MINUTE) throw new TooManyCalls(endsInMs);
  }
  const keylessAgent = new Agent({ ...shared, connect: connectorTo({ ...connecting, admit }) });
  const opened = remembering(MAX_KEPT, (sealed) => secrets.open(sealed));
  const ownHeaders = remembering(MAX_KEPT_HEADERS, (sealed) => headersIn(secrets.open(sealed)));
  const signingKeys = remembering(MAX_KEPT, (sealed) => signingKeyOf(secrets.open(sealed)));
  const targets = remembering(MAX_KEPT, (url) => allowedTarget(url, settings));

  function headersOf({ eventId }: WebhookContent, webhook: ClaimedWebhook, { origin }: Target, body: string) {
    const at = now();
    const { headers, signingKey } = webhook;
    const own = headers === null ? undefined : ownHeaders.memo(headers);
    const { secret, previousSecret } = secretsAt(webhook, new Date(at));
    const signature = signWebhook({
      id: eventId,
      body,
      at,
      secret: opened.memo(secret),
      previousSecret: previousSecret === null ? undefined : opened.memo(previousSecret),
      signingKey: signingKey === null ? undefined : signingKeys.memo(signingKey),
    });
    const traceparent = webhook.sendsTraceparent ? currentTraceparent() : undefined;
    return {
      // Headers can hold secrets: a delivery that still goes to a former origin of the webhook does not get them.
      ...(own?.origin === origin && own.headers),
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
      if (webhook === null || stored === null) return refused('event_gone');
      if (!webhook.active && effectsOf(claim.kind).webhooks !== 'tested') {
        return refused('webhook_off');
      }
      const target = targets.memo(url);
      if (target === 'refused') return refused('url_refused');
      const { keyless } = webhook;
      if (effectsOf(claim.kind).webhooks === 'named') {
        const notified = await findNotified(database, content.eventId);
        if ('refusal' in notified) return refused(notified.refusal);
      }
      const body = whatIsSent(stored, claim, webhook);
      if (body === null) return refused('body_too_large');
      const headers = headersOf(content, webhook, target, body);
      const request = { ...target, method: 'POST', headers, body, reset: keyless } as const;
      return post(keyless ? keylessAgent : agent, request, signal);
    },
    async close() {
      await Promise.all([agent.destroy(), keylessAgent.destroy()]);
    },
  };
}

/** To one address, over all forms made without a key. */
const KEYLESS_CALLS_A_MINUTE = 60;

/** Success is a 2xx within this. */
const TIMEOUT_MS = 10_000;

export const LONGEST_CALL_MS = TIMEOUT_MS + READ_MS;

/** Of an answer, whose status alone counts. Some servers set more than the 16 KiB that Node takes. */
const MAX_HEADERS_BYTES = 256 * 1024;

/** Saves a handshake for each delivery of a busy form, and soon frees the receiver's connection. */
const KEEP_ALIVE_MS = 4_000;

/** Where a URL leads; `refused` if it may not be called: the settings can have changed since it was registered. */
function allowedTarget(url: string, settings: { allowPrivate: boolean }): Target | 'refused' {
  if (checkWebhookUrl(url, settings) !== undefined) return 'refused';
  const { origin, pathname, search } = new URL(url);
  return { origin, path: `${pathname}${search}` };
}

/** Makes values once for each key, and keeps those that were asked for last. */
function remembering<Value extends {}>(max: number, memoMethod: (key: string) => Value) {
  return new LRUCache<string, Value>({ max, memoMethod });
}

/** Null if a template makes too much of an event. */
function whatIsSent(stored: string, { kind }: Claim, { template }: ClaimedWebhook): string | null {
  try {
    return webhookBody(stored, { kind, template });
  } catch (error) {
    if (error instanceof BodyTooLarge) return null;
    throw error;
  }
}

async function post(
  agent: Agent,
  request: Dispatcher.DispatchOptions & Target,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    return outcomeOf(await sendRequest(agent, request, { timeoutMs: TIMEOUT_MS, signal }), request);
  } catch (error) {
    if (signal.aborted || error instanceof DatabaseUnavailable || isLocalFault(error)) throw error;
    if (error instanceof TooManyCalls) {
      return waits('calls_used_up', error.waitMs);
    }
    const { says, code } = connectionCause(error);
    return { stage: 'sent', error: `${says}.`, facts: { code } };
  }
}

function outcomeOf({ status, retryAfter, location, body }: ReceiverAnswer, { origin }: Target): Outcome {
  const answer = { stage: 'answered', responseStatus: status, responseBody: body } as const;
  if (status >= 200 && status < 300) return { ...answer, next: 'done' };
  if (status === 410) return { ...answer, next: 'turn off', error: 'Answered 410 Gone.' };
  if (PROCESSED_REDIRECTS.has(status)) {
    const host = URL.parse(location ?? '', origin)?.host ?? new URL(origin).host;
    const error = `Answered ${status} with a redirect to ${host}. Only a 2xx answer confirms that it was received.`;
    return { ...answer, next: 'once more', error };
  }
  const hint = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return { ...answer, next: 'retry', error: `Answered ${status}${hint}.`, retryAfter };
}

/** The address has been called as often as it may be for now. */
class TooManyCalls extends Error {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super('Too many calls to this address');
    this.waitMs = waitMs;
  }
}

/** A few MB at most. */
const MAX_KEPT = 10_000;
const MAX_KEPT_HEADERS = 1_000;

export type WebhookSender = {
  /**
   * Posts one delivery, signed at this moment. Throws only if `signal` is aborted, or the database, this machine or
   * its network fails; whatever the receiver does is an outcome.
   */
  send(claim: Claim, content: WebhookContent, signal: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
};

/** A URL in two parts. */
type Target = { origin: string; path: string };

export type WebhookSenderOptions = Pick<
  DeliveryOptions,
  'database' | 'secrets' | 'settings' | 'now' | 'resolveHost' | 'openConnector'
>;
