import type { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import type { CallCount } from '../../store/rate-limits.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/attempt.ts';
import { admittingConnector, publicConnector, systemResolver } from './connector.ts';

/**
 * Opens the HTTP client of webhooks, which calls public addresses only unless the settings allow others,
 * and follows no redirects. It keeps connections open for a few seconds; `close` ends them.
 *
 * Calls for forms made without a key are limited by the address that they go to, over all such forms, so that
 * those can't be used to flood it. Each has a connection of its own, so that each is counted.
 */
export function openWebhookClient({
  settings: { allowPrivate },
  resolveHost: resolve = systemResolver(),
  countCall,
}: ClientOptions): WebhookClient {
  const shared = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS, pipelining: 1 };
  const agent = new Agent({
    ...shared,
    connect: allowPrivate ? { timeout: TIMEOUT_MS } : publicConnector(resolve, TIMEOUT_MS),
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  async function admit(address: string): Promise<void> {
    const { hits, endsInMs } = await countCall(`webhook:${address}`, 60);
    if (hits > KEYLESS_CALLS_A_MINUTE) throw new TooManyCalls(endsInMs);
  }
  const keylessAgent = new Agent({
    ...shared,
    connect: admittingConnector({ resolve, allowPrivate, timeoutMs: TIMEOUT_MS, admit }),
  });
  return {
    post: (request, signal) => post(request.keyless ? keylessAgent : agent, request, signal),
    close: async () => {
      await Promise.all([agent.destroy(), keylessAgent.destroy()]);
    },
  };
}

/** To one address, over all forms made without a key. */
const KEYLESS_CALLS_A_MINUTE = 60;

/** The address has been called as often as it may be for now. */
class TooManyCalls extends Error {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super('Too many calls to this address');
    this.waitMs = waitMs;
  }
}

/**
 * Why a connection failed, in words for the log of deliveries. Built from the error's code alone: its
 * message can contain addresses of the network the service runs in.
 */
export function describeConnectionError(error: unknown): string {
  const code = codeOf(error);
  return (
    (code === undefined ? undefined : connectionErrors.get(code)) ??
    `The connection failed${code === undefined ? '' : ` (${code})`}.`
  );
}

/** Success is a 2xx within this. */
const TIMEOUT_MS = 10_000;

/** Saves a handshake for each delivery of a busy form, and soon frees the receiver's connection. */
const KEEP_ALIVE_MS = 4_000;

async function post(agent: Agent, request: WebhookRequest, signal: AbortSignal): Promise<Outcome> {
  signal.throwIfAborted();
  // Cheaper than AbortSignal.any, which would be called for each delivery.
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, TIMEOUT_MS);
  signal.addEventListener('abort', end, { once: true });
  try {
    const { origin, pathname, search } = new URL(request.url);
    const response = await agent.request({
      origin,
      path: `${pathname}${search}`,
      method: 'POST',
      headers: request.headers,
      body: request.body,
      reset: request.keyless,
      signal: ending.signal,
    });
    return outcomeOf(response, await readBodyStart(response.body));
  } catch (error) {
    if (signal.aborted || error instanceof DatabaseUnavailable) throw error;
    if (error instanceof TooManyCalls) {
      return { outcome: 'waits', error: 'Waits: too many calls to this address.', waitMs: error.waitMs };
    }
    return {
      outcome: 'failed',
      error: ending.signal.aborted ? 'No answer within 10 s.' : describeConnectionError(error),
    };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

function outcomeOf({ statusCode, headers }: Dispatcher.ResponseData, responseBody: string): Outcome {
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

/**
 * The first 2 KiB of a body as text, or what of it arrives within a second. The rest is never read: the
 * connection is closed instead.
 */
async function readBodyStart(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  body.on('error', () => undefined);
  const timer = setTimeout(() => body.destroy(), READ_MS);
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > KEPT_BYTES) break;
    }
  } catch {
    // Of a body that is cut off, the part that arrived is kept.
  } finally {
    clearTimeout(timer);
    body.destroy();
  }
  const text = Buffer.concat(chunks).subarray(0, KEPT_BYTES).toString('utf8');
  return text.replaceAll('\0', '\uFFFD');
}

const KEPT_BYTES = 2048;

/** The status alone decides the outcome; the body is only shown in the log of deliveries. */
const READ_MS = 1000;

/** The code of an error, or of the first error that it aggregates. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause);
}

const connectionErrors = new Map([
  ['NOT_PUBLIC', 'The host has no public address.'],
  ['ENOTFOUND', 'The host name is not known.'],
  ['ECONNREFUSED', 'The connection was refused.'],
  ['ECONNRESET', 'The connection was reset.'],
  ['UND_ERR_SOCKET', 'The connection was closed before an answer came.'],
  ['UND_ERR_CONNECT_TIMEOUT', 'No connection within 10 s.'],
  ['UND_ERR_HEADERS_TIMEOUT', 'No answer within 10 s.'],
  ['UND_ERR_BODY_TIMEOUT', 'No answer within 10 s.'],
  ['UND_ERR_HEADERS_OVERFLOW', 'The headers of the answer are too large.'],
  ['ETIMEDOUT', 'No connection within 10 s.'],
  ['CERT_HAS_EXPIRED', 'The TLS certificate has expired.'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'The TLS certificate is self-signed.'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'The TLS certificate is for another host.'],
]);

export type WebhookClient = {
  /**
   * Posts once. Throws only if `signal` is aborted or the database fails; whatever the receiver does is an
   * outcome.
   */
  post(request: WebhookRequest, signal: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
};

type WebhookRequest = { url: string; headers: Record<string, string>; body: string; keyless: boolean };

type ClientOptions = Pick<DeliveryOptions, 'settings' | 'resolveHost'> & {
  /** Counts a call under a key, in windows of so many seconds that hold over all processes. */
  countCall: (key: string, seconds: number) => Promise<CallCount>;
};
