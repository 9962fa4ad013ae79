import { because } from '../../domain/delivery/causes.ts';
import { longestTotal, nextAttempt } from '../../domain/delivery/retry.ts';
import { instantOfId, newId } from '../../domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../domain/limits/limits.ts';
import { DatabaseUnavailable, isLocalFault, transientFault } from '../../store/database/faults.ts';
import type { Claim, QueuedMailContent, WebhookContent } from '../../store/deliveries/claimed.ts';
import type { DeliveryResult } from '../../store/deliveries/settle.ts';
import { throttledWarning, type Warn } from '../../telemetry/log.ts';
import type { AttemptOutcome } from '../../telemetry/metrics.ts';
import { runWith } from '../../telemetry/trace-context.ts';
import type { Span, Tracing } from '../../telemetry/tracing.ts';
import type { DeliveryOptions } from '../options.ts';
import type { LoggedFacts, Outcome } from '../outcome.ts';

/**
 * Makes what attempts one claimed delivery and decides what is stored of it: delivered, given up, or when
 * to try again by the retry schedule.
 *
 * `signal` ends an attempt early; the delivery is then released as if nothing had been attempted.
 */
export function createAttempts(
  options: AttemptOptions,
): (claim: Claim, signal: AbortSignal) => Promise<Attempted> {
  const { now, webhooks, mails, tracing } = options;
  const logUndelivered = createUndeliveredLog(options);

  function record(claim: Claim, result: Result, span: Span | undefined, facts?: LoggedFacts): void {
    if (span !== undefined) endSpan(span, result);
    const outcome = outcomeOf(result);
    const { channel } = claim.content;
    const seconds = result.attempt && result.attempt.durationMs / 1000;
    options.metrics?.onAttempt({ channel, kind: claim.kind, outcome, seconds });
    if (outcome !== 'delivered') logUndelivered(claim, result, facts);
  }

  return async (claim, signal) => {
    const startedAt = now();
    const claimed = { id: claim.id, lease: claim.lease };
    const span = tracing && startSpan(tracing, claim);
    try {
      const { content } = claim;
      // Without a trace of its own it would be recorded in that of the request that happened to wake the worker.
      const outcome = await runWith(span?.traceparent, () =>
        content.channel === 'webhook'
          ? webhooks.send(claim, content, signal)
          : mails.send(claim, content, signal),
      );
      const result = resultOf(options, claim, outcome, { startedAt, durationMs: now() - startedAt });
      record(claim, result, span, 'facts' in outcome ? outcome.facts : undefined);
      return { result: { ...claimed, ...result }, outcome };
    } catch (error) {
      if (signal.aborted) span?.end();
      if (signal.aborted) return { result: { ...claimed, status: 'pending', delayMs: 0 } };
      const result = afterFault(options, claim, error);
      record(claim, result, span, { err: error });
      return { result: { ...claimed, ...result } };
    }
  };
}

/**
 * Makes what logs an attempt that was not delivered: one line, without addresses and URLs. Anybody can let webhooks and
 * emails fail, so that of each kind of failure only some lines are logged, and those left out counted.
 */
function createUndeliveredLog({
  log,
  now,
}: AttemptOptions): (claim: Claim, result: Result, facts?: LoggedFacts) => void {
  const byKind = new Map<string, Warn>();
  return ({ id, content: { channel }, receiver, kind, formId, step }, result, facts) => {
    const { error: reason, delayMs, attempt } = result;
    const outcome = outcomeOf(result);
    // An operator can mend the mail server, but neither receivers nor limits: these are no warnings.
    const expected = channel === 'mail' && attempt !== undefined ? 'warn' : 'info';
    const level = facts?.err === undefined ? expected : 'error';
    const key = `${channel} ${outcome} ${level}`;
    const write = byKind.get(key) ?? throttledWarning(log, now, SAMPLED_MS, SAMPLED_LINES);
    byKind.set(key, write);
    const about = {
      delivery: id,
      kind,
      form: formId,
      ...(channel === 'webhook' && { webhook: receiver }),
      step,
    };
    const status = attempt?.responseStatus;
    write(
      { ...about, outcome, reason, status, nextInMs: delayMs, ...facts },
      `${undelivered[channel]}: ${reason}`,
      level,
    );
  };
}

const undelivered = { webhook: 'A webhook could not be delivered', mail: 'An email could not be sent' };

/** Of each channel, outcome and level. */
const SAMPLED_LINES = 100;
const SAMPLED_MS = 60_000;

/** The attempt in the trace of the request that caused the delivery, if that is recorded. */
function startSpan(tracing: Tracing, claim: Claim): Span | undefined {
  const { traceparent: parent, content, id, kind, receiver, step } = claim;
  if (parent === null) return undefined;
  // Traces hold no addresses: of an email its receiver is one.
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

/**
 * A failure of our own that will pass takes no step of the schedule: the delivery waits for a quarter of its age. Any
 * other one takes a step, so that it ends though it may come each time. So does what has not passed after a day: the
 * name servers of one receiver can fail as ours do.
 */
function afterFault(options: AttemptOptions, claim: Claim, error: unknown): Result {
  const waits = { status: 'pending', ...because('not_tried') } as const;
  const isPassing = transientFault(error) !== undefined || isLocalFault(error);
  if (error instanceof DatabaseUnavailable || (isPassing && ageOf(options, claim) < DAY_MS))
    return { ...waits, delayMs: pauseOf(options, claim) };
  const delayMs = delayAfter(options, claim);
  if (delayMs === null) return { status: 'failed', ...because('never_tried') };
  return { ...waits, delayMs, steps: 1 };
}

function ageOf({ now }: AttemptOptions, { id }: Claim): number {
  return now() - instantOfId(id);
}

/** A quarter of its age, so that what lasts is tried more and more rarely. */
function pauseOf(options: AttemptOptions, claim: Claim): number {
  const delayMs = Math.min(Math.max(ageOf(options, claim) / 4, LEAST_PAUSE_MS), LONGEST_PAUSE_MS);
  return delayMs * (1 + options.random());
}

const LEAST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

function resultOf(options: AttemptOptions, claim: Claim, outcome: Outcome, timing: Timing): Result {
  if (outcome.stage === 'before sending') {
    const why = because(outcome.cause);
    return 'waitMs' in outcome
      ? { status: 'pending', ...why, delayMs: outcome.waitMs }
      : { status: 'failed', ...why };
  }
  const { schedule } = options.settings;
  const isAnswered = outcome.stage === 'answered';
  const attempt = {
    id: newId('att', timing.startedAt),
    startedAt: new Date(timing.startedAt),
    durationMs: timing.durationMs,
    responseStatus: outcome.responseStatus,
    responseBody: outcome.responseBody,
  };
  if (isAnswered && outcome.next === 'done') return { status: 'delivered', attempt };
  const { error } = outcome;
  const next = isAnswered ? outcome.next : 'retry';
  if (next === 'wait' && ageOf(options, claim) < longestTotal(schedule) * 1_000)
    return { status: 'pending', error, delayMs: pauseOf(options, claim) };
  const isOver = next === 'end' || next === 'turn off';
  const delayMs = isOver ? null : delayAfter(options, claim, isAnswered ? outcome.retryAfter : undefined);
  if (delayMs === null) return { status: 'failed', error, attempt };
  if (next !== 'once more') return { status: 'pending', delayMs, error, attempt };
  const last = scheduleOf(claim, schedule).length - 1;
  return { status: 'pending', delayMs: HOUR_MS, steps: last - claim.step, error, attempt };
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

/** `outcome` is missing if none came of it: the service failed, or was stopped. */
export type Attempted = { result: DeliveryResult; outcome?: Outcome };

export type AttemptOptions = Pick<
  DeliveryOptions,
  'settings' | 'now' | 'random' | 'log' | 'metrics' | 'tracing'
> & {
  webhooks: { send(claim: Claim, content: WebhookContent, signal: AbortSignal): Promise<Outcome> };
  mails: { send(claim: Claim, content: QueuedMailContent, signal: AbortSignal): Promise<Outcome> };
};

type Result = Omit<DeliveryResult, 'id' | 'lease'>;
type Timing = { startedAt: number; durationMs: number };
