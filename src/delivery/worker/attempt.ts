import { newId } from '../../domain/ids.ts';
import { nextAttempt } from '../../domain/retry.ts';
import type { Claim } from '../../store/delivery-queue.ts';
import type { DeliveryResult } from '../../store/delivery-results.ts';
import type { MailSender } from '../mail/sender.ts';
import type { DeliveryOptions } from '../options.ts';
import type { WebhookSender } from '../webhook/sender.ts';
import type { Outcome } from './outcome.ts';

/**
 * Makes what tries one claimed delivery and says what is to be written down: delivered, given up, or
 * when to try again by the retry schedule.
 *
 * `signal` ends an attempt early; the delivery is then given back as if nothing had been tried.
 */
export function createAttempts(
  options: AttemptOptions,
): (claim: Claim, signal: AbortSignal) => Promise<Attempted> {
  const { now, log, webhooks, mails } = options;

  return async (claim, signal) => {
    const startedAt = now();
    const claimed = { id: claim.id, lease: claim.lease };
    try {
      const { content } = claim;
      const outcome =
        content.channel === 'webhook'
          ? await webhooks.send(claim, content, signal)
          : await mails.send(claim, content.mail, signal);
      const tried = { startedAt, durationMs: now() - startedAt };
      return { result: { ...claimed, ...resultOf(options, claim, outcome, tried) }, gone: isGone(outcome) };
    } catch (error) {
      if (signal.aborted) return { result: { ...claimed, status: 'pending', delayMs: 0 }, gone: false };
      log.error({ err: error, delivery: claim.id }, 'A delivery could not be tried.');
      return {
        result: { ...claimed, status: 'pending', delayMs: FAULT_DELAY_MS, error: OUR_FAULT },
        gone: false,
      };
    }
  };
}

/** After a failure of our own, such as a database that is away. */
const FAULT_DELAY_MS = 30_000;
const OUR_FAULT = 'Waits: the service could not try it.';

function resultOf(options: AttemptOptions, claim: Claim, outcome: Outcome, tried: Tried): Result {
  const { settings, now, random } = options;
  if (outcome.outcome === 'waits')
    return { status: 'pending', error: outcome.error, delayMs: outcome.waitMs };
  if (outcome.outcome === 'dropped') return { status: 'failed', error: outcome.error };

  const { responseStatus, responseBody } = outcome;
  const attempt = {
    id: newId('att', tried.startedAt),
    startedAt: new Date(tried.startedAt),
    durationMs: tried.durationMs,
    responseStatus,
    responseBody,
  };
  if (outcome.outcome === 'delivered') return { status: 'delivered', attempt };

  const { error, final, retryAfter } = outcome;
  if (final === true) return { status: 'failed', error, attempt };
  const at = new Date(now());
  const schedule = scheduleOf(claim, settings.schedule);
  const next = nextAttempt({ attempt: claim.step + 1, schedule, retryAfter, now: at, random });
  if (next === null) return { status: 'failed', error, attempt };
  return { status: 'pending', delayMs: next.getTime() - at.getTime(), error, attempt };
}

function scheduleOf({ content }: Claim, schedule: readonly number[]): readonly number[] {
  const keyless = content.channel === 'webhook' && content.webhook?.keyless === true;
  return keyless ? schedule.slice(0, KEYLESS_ATTEMPTS) : schedule;
}

/** Whoever makes a form without a key can have a stranger called no more often than this. */
const KEYLESS_ATTEMPTS = 3;

function isGone(outcome: Outcome): boolean {
  return outcome.outcome === 'failed' && outcome.gone === true;
}

/** `gone`: the receiver said that it wants no more. */
export type Attempted = { result: DeliveryResult; gone: boolean };

export type AttemptOptions = Pick<DeliveryOptions, 'settings' | 'now' | 'random' | 'log'> & {
  webhooks: WebhookSender;
  mails: MailSender;
};

type Result = Omit<DeliveryResult, 'id' | 'lease'>;
type Tried = { startedAt: number; durationMs: number };
