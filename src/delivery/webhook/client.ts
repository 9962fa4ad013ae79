import { Agent } from 'undici';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import type { CallCount } from '../../store/rate-limits.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/attempt.ts';
import { admittingConnector, publicConnector, systemResolver } from './connector.ts';
import { type Answer, exchange, NoAnswerError } from './exchange.ts';

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
  const { target, headers, body, keyless } = request;
  const options = { ...target, method: 'POST', headers, body, reset: keyless } as const;
  try {
    return outcomeOf(await exchange(agent, options, { timeoutMs: TIMEOUT_MS, signal }));
  } catch (error) {
    if (signal.aborted || error instanceof DatabaseUnavailable) throw error;
    if (error instanceof TooManyCalls) {
      return { outcome: 'waits', error: 'Waits: too many calls to this address.', waitMs: error.waitMs };
    }
    return {
      outcome: 'failed',
      error: error instanceof NoAnswerError ? 'No answer within 10 s.' : describeConnectionError(error),
    };
  }
}

function outcomeOf({ status, retryAfter, body }: Answer): Outcome {
  const answer = { responseStatus: status, responseBody: body };
  if (status >= 200 && status < 300) return { outcome: 'delivered', ...answer };
  if (status === 410)
    return { outcome: 'failed', error: 'Answered 410 Gone.', final: true, gone: true, ...answer };
  const hint = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return { outcome: 'failed', error: `Answered ${status}${hint}.`, retryAfter, ...answer };
}

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

type WebhookRequest = {
  target: WebhookTarget;
  headers: Record<string, string>;
  body: string;
  keyless: boolean;
};

/** A URL in two parts. */
export type WebhookTarget = { origin: string; path: string };

type ClientOptions = Pick<DeliveryOptions, 'settings' | 'resolveHost'> & {
  /** Counts a call under a key, in windows of so many seconds that hold over all processes. */
  countCall: (key: string, seconds: number) => Promise<CallCount>;
};
