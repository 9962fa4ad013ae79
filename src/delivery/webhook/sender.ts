import { Agent, type Dispatcher } from 'undici';
import { effectsOf } from '../../domain/events/index.ts';
import { checkWebhookUrl } from '../../domain/public-address.ts';
import { signWebhook } from '../../domain/signature.ts';
import type { Claim, ClaimedWebhook, WebhookContent } from '../../store/delivery-queue.ts';
import { countCall } from '../../store/rate-limits.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/outcome.ts';
import { publicConnector, systemResolver } from './connector.ts';
import { faultInWords } from './fault-messages.ts';
import { createSecretReader, type SecretReader } from './open-secrets.ts';
import { readStart } from './read-start.ts';

/** Makes what posts webhooks. It keeps connections open for a few seconds; `close` ends them. */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  const { database, secrets, settings, now, resolveHost = systemResolver() } = options;
  const agent = new Agent({
    connect: settings.allowPrivate ? { timeout: TIMEOUT_MS } : publicConnector(resolveHost, TIMEOUT_MS),
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
  });
  const readSecrets = createSecretReader(secrets);

  return {
    async send(claim, content, signal) {
      const { webhook, body } = content;
      if (webhook === null || body === null) return { outcome: 'dropped', error: 'The event is gone.' };
      if (!webhook.active && effectsOf(claim.kind).webhooks !== 'tested') {
        return { outcome: 'dropped', error: 'The webhook is turned off.' };
      }
      // It was registered under other settings.
      if (checkWebhookUrl(content.url, settings) !== undefined) {
        return { outcome: 'dropped', error: 'The URL may not be called.' };
      }
      if (webhook.keyless) {
        const { hits, endsInMs } = await countCall(database, `webhook:${new URL(content.url).host}`, 60);
        if (hits > KEYLESS_CALLS_A_MINUTE) {
          return { outcome: 'waits', error: 'Waits: too many calls to this host.', waitMs: endsInMs };
        }
      }
      return post(
        agent,
        { url: content.url, headers: headersOf(content, webhook, readSecrets, now()), body },
        signal,
      );
    },
    close: () => agent.destroy(),
  };
}

/** Success is a 2xx within this. */
const TIMEOUT_MS = 10_000;

/** Saves a handshake for each delivery of a busy form, and costs a receiver nothing for long. */
const KEEP_ALIVE_MS = 4_000;

/** To one host, over all forms made without a key, so that they can't be used to flood it. */
const KEYLESS_CALLS_A_MINUTE = 60;

async function post(agent: Agent, request: Post, signal: AbortSignal): Promise<Outcome> {
  signal.throwIfAborted();
  // Cheaper than AbortSignal.any, for every delivery there is.
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, TIMEOUT_MS);
  signal.addEventListener('abort', end, { once: true });
  try {
    const response = await agent.request({
      ...targetOf(request.url),
      method: 'POST',
      headers: request.headers,
      body: request.body,
      signal: ending.signal,
    });
    return judge(response, await readStart(response.body));
  } catch (error) {
    if (signal.aborted) throw error;
    return {
      outcome: 'failed',
      error: ending.signal.aborted ? 'No answer within 10 s.' : faultInWords(error),
    };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

function targetOf(url: string): { origin: string; path: string } {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: `${pathname}${search}` };
}

function judge({ statusCode, headers }: Dispatcher.ResponseData, responseBody: string): Outcome {
  const answer = { responseStatus: statusCode, responseBody };
  if (statusCode >= 200 && statusCode < 300) return { outcome: 'delivered', ...answer };
  if (statusCode === 410)
    return { outcome: 'failed', error: 'Answered 410 Gone.', final: true, gone: true, ...answer };
  const hint = statusCode >= 300 && statusCode < 400 ? '; redirects are not followed' : '';
  const retryAfter = headers['retry-after'];
  return {
    outcome: 'failed',
    error: `Answered ${statusCode}${hint}.`,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
    ...answer,
  };
}

function headersOf(content: WebhookContent, webhook: ClaimedWebhook, readSecrets: SecretReader, at: number) {
  const { secret, previousSecret } = readSecrets(webhook, at);
  const signature = signWebhook({
    id: content.eventId,
    body: content.body ?? '',
    at,
    secret,
    previousSecret,
  });
  return {
    'content-type': 'application/json',
    'user-agent': 'headless-form-service',
    'accept-encoding': 'identity',
    ...signature,
  };
}

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

type Post = { url: string; headers: Record<string, string>; body: string };
