import { longestTotal, nextAttempt } from '../../domain/delivery/retry.ts';
import { newId } from '../../domain/ids.ts';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import type { Claim, WebhookContent } from '../../store/deliveries/claim.ts';
import type { DeliveryResult } from '../../store/deliveries/delivery-results.ts';
import type { AttemptOutcome } from '../../telemetry/metrics.ts';
import { runWith } from '../../telemetry/trace-context.ts';
import type { Span, Tracing } from '../../telemetry/tracing.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Makes what attempts one claimed delivery and decides what is stored of it: delivered, given up, or when
 * to try again by the retry schedule.
 *
 * `signal` ends an attempt early; the delivery is then released as if nothing had been attempted.
 */
export function createAttempts(
  options: AttemptOptions,
): (claim: Claim, signal: AbortSignal) => Promise<Attempted> {
  const { now, log, webhooks, mails, tracing } = options;

  function record({ kind, content: { channel } }: Claim, result: Result, span: Span | undefined): void {
    if (span !== undefined) endSpan(span, result);
    const { attempt } = result;
    const seconds = attempt && attempt.durationMs / 1000;
    options.metrics?.onAttempt({ channel, kind, outcome: outcomeOf(result), seconds });
  }

  return async (claim, signal) => {
    const startedAt = now();
    const claimed = { id: claim.id, lease: claim.lease };
    const span = tracing && startSpan(tracing, claim);
    try {
      const { content } = claim;
      // Else it would belong to the request that happened to wake the worker.
      const outcome = await runWith(span?.traceparent, () =>
        content.channel === 'webhook'
          ? webhooks.send(claim, content, signal)
          : mails.send(claim, content.mail, signal),
      );
      const result = resultOf(options, claim, outcome, { startedAt, durationMs: now() - startedAt });
      record(claim, result, span);
      return { result: { ...claimed, ...result }, gone: isGone(outcome) };
    } catch (error) {
      if (signal.aborted) span?.end();
      if (signal.aborted) return { result: { ...claimed, status: 'pending', delayMs: 0 }, gone: false };
      log.error(
        { err: error, delivery: claim.id },
        'Could not attempt a delivery; it goes on by its schedule.',
      );
      const result = afterFault(options, claim, error);
      record(claim, result, span);
      return { result: { ...claimed, ...result }, gone: false };
    }
  };
}

/** The attempt in the trace of the request that caused the delivery, if that is recorded. */
function startSpan(tracing: Tracing, claim: Claim): Span | undefined {
  const { traceparent: parent, content, id, kind, receiver, step } = claim;
  if (parent === null) return undefined;
  // A mail's receiver is an address.
  const ofWebhook = content.channel === 'webhook' && {
    'forms.webhook.id': receiver,
    'forms.event.id': content.eventId,
  };
  return tracing.startSpan(`deliver ${content.channel}`, {
    kind: 'client',
    parent,
    attributes: {
      'forms.delivery.id': id,
      'forms.delivery.kind': kind,
      'forms.delivery.step': step,
      ...ofWebhook,
    },
  });
}

function endSpan(span: Span, result: Result): void {
  const { error, attempt } = result;
  const outcome = outcomeOf(result);
  span.setAttributes({ 'forms.delivery.outcome': outcome, 'forms.response.status': attempt?.responseStatus });
  if (outcome !== 'delivered' && outcome !== 'postponed') span.fail(error ?? outcome);
  span.end();
}

function outcomeOf({ status, attempt }: Result): AttemptOutcome {
  if (status === 'delivered') return 'delivered';
  if (status === 'failed') return attempt === undefined ? 'dropped' : 'failed';
  return attempt === undefined ? 'postponed' : 'retried';
}

/** A failure of our own takes a step of the schedule, so that it ends though it may come each time. */
function afterFault(options: AttemptOptions, claim: Claim, error: unknown): Result {
  const waits = { status: 'pending', error: 'Waits: the service could not try it.' } as const;
  if (error instanceof DatabaseUnavailable) return { ...waits, delayMs: DATABASE_AWAY_MS };
  const delayMs = delayAfter(options, claim);
  if (delayMs === null) return { status: 'failed', error: 'The service could not try it.' };
  return { ...waits, delayMs, advances: true };
}

const DATABASE_AWAY_MS = 30_000;

function resultOf(options: AttemptOptions, claim: Claim, outcome: Outcome, timing: Timing): Result {
  if (outcome.outcome === 'waits')
    return { status: 'pending', error: outcome.error, delayMs: outcome.waitMs };
  if (outcome.outcome === 'dropped') return { status: 'failed', error: outcome.error };

  const { responseStatus, responseBody } = outcome;
  const attempt = {
    id: newId('att', timing.startedAt),
    startedAt: new Date(timing.startedAt),
    durationMs: timing.durationMs,
    responseStatus,
    responseBody,
  };
  if (outcome.outcome === 'delivered') return { status: 'delivered', attempt };

  const { error, final, retryAfter } = outcome;
  if (final === true) return { status: 'failed', error, attempt };
  const delayMs = delayAfter(options, claim, retryAfter);
  return delayMs === null
    ? { status: 'failed', error, attempt }
    : { status: 'pending', delayMs, error, attempt };
}

/** Milliseconds until the next attempt; null if this was the last. */
function delayAfter(
  { settings, now, random }: AttemptOptions,
  claim: Claim,
  retryAfter?: string,
): number | null {
  const at = new Date(now());
  const schedule = scheduleOf(claim, settings.schedule);
  const { postponedFrom } = claim;
  if (postponedFrom !== null && at.getTime() - postponedFrom.getTime() >= longestTotal(schedule) * 1_000)
    return null;
  const next = nextAttempt({ attempt: claim.step + 1, schedule, retryAfter, now: at, random });
  return next === null ? null : next.getTime() - at.getTime();
}

function scheduleOf({ content }: Claim, schedule: readonly number[]): readonly number[] {
  const keyless = content.channel === 'webhook' && content.webhook?.keyless === true;
  return keyless ? schedule.slice(0, KEYLESS_ATTEMPTS) : schedule;
}

/** A form made without a key can name a stranger's URL, which is called no more often than this. */
const KEYLESS_ATTEMPTS = 3;

function isGone(outcome: Outcome): boolean {
  return outcome.outcome === 'failed' && outcome.gone === true;
}

/** `gone`: the receiver answered that it wants no more. */
export type Attempted = { result: DeliveryResult; gone: boolean };

export type AttemptOptions = Pick<
  DeliveryOptions,
  'settings' | 'now' | 'random' | 'log' | 'metrics' | 'tracing'
> & {
  webhooks: { send(claim: Claim, content: WebhookContent, signal: AbortSignal): Promise<Outcome> };
  mails: { send(claim: Claim, mail: unknown, signal: AbortSignal): Promise<Outcome> };
};

/** What came of an attempt. */
export type Outcome =
  | ({ outcome: 'delivered' } & Answer)
  | ({
      outcome: 'failed';
      /** Why, in words for the owner of the webhook. Never contains a private address. */
      error: string;
      /** True: trying again can't help. */
      final?: boolean;
      /** The receiver wants no more. */
      gone?: boolean;
      /** The `Retry-After` header of the answer. */
      retryAfter?: string | undefined;
    } & Answer)
  /** Nothing was attempted: a limit is reached. */
  | { outcome: 'waits'; error: string; waitMs: number }
  /** Nothing was attempted and nothing will be. */
  | { outcome: 'dropped'; error: string };

/** What the receiver answered: an HTTP or SMTP status, and the beginning of its text. */
type Answer = { responseStatus?: number | undefined; responseBody?: string | undefined };

type Result = Omit<DeliveryResult, 'id' | 'lease'>;
type Timing = { startedAt: number; durationMs: number };
