/**
 * The seconds before each attempt of a delivery, beginning with the first one. The early steps bridge a restart of
 * the receiver, the late ones let it be down for a day.
 */
export const defaultSchedule: readonly number[] = [0, 5, 30, 120, 900, 3600, 21_600, 86_400];

/**
 * Returns when to make the next attempt, or null when the schedule is exhausted.
 *
 * `attempt` counts the attempts made so far (0 for a new delivery). Up to 20 % jitter keeps
 * many deliveries from being tried again at the same time. `retryAfter` is the header of the receiver's answer,
 * honoured up to the step's own delay or an hour, whichever is more. `random` gives [0, 1).
 */
export function nextAttempt({ attempt, schedule, retryAfter, now, random }: RetryInput): Date | null {
  const step = schedule[attempt];
  if (step === undefined) return null;
  const jittered = step * (1 + MAX_JITTER * random());
  const asked = Math.min(parseRetryAfter(retryAfter, now) ?? 0, Math.max(step, MAX_RETRY_AFTER_SECONDS));
  return new Date(now.getTime() + Math.round(Math.max(jittered, asked) * 1000));
}

/** The most seconds that may pass from the first delay of a schedule to its last attempt, with jitter. */
export function longestTotal(schedule: readonly number[]): number {
  return schedule.reduce((sum, step) => sum + step, 0) * (1 + MAX_JITTER);
}

/** Reads a `Retry-After` header, seconds or an HTTP date, as seconds from now; undefined if it is neither. */
export function parseRetryAfter(header: string | null | undefined, now: Date): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text);
  if (!httpDate.test(text)) return undefined;
  // A date in the form of asctime names no zone, and would be taken for a local time.
  const instant = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(instant) ? undefined : Math.max(0, (instant - now.getTime()) / 1000);
}

/** Answers to a POST that was processed (RFC 9110, sections 15.4.3 and 15.4.4): to be looked at elsewhere by GET. */
export const PROCESSED_REDIRECTS: ReadonlySet<number> = new Set([302, 303]);

/**
 * Reads WEBHOOK_RETRY_SCHEDULE: seconds, comma-separated. Throws an error that says what is wrong.
 */
export function parseSchedule(text: string): number[] {
  const steps = text.split(',').map((part) => part.trim());
  const schedule = steps.map((step) => (/^\d+(\.\d+)?$/.test(step) ? Number(step) : Number.NaN));
  if (schedule.length > MAX_STEPS || schedule.some((step) => !(step <= MAX_STEP_SECONDS))) {
    throw new Error('expected 1 to 50 delays in seconds, each at most 604800, such as 0,5,30,120');
  }
  return schedule;
}

/** IMF-fixdate, RFC 850 and asctime, the three that HTTP knows. */
const httpDate =
  /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} [\d:]{8} GMT|[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} [\d:]{8} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})$/;

const MAX_JITTER = 0.2;
const MAX_RETRY_AFTER_SECONDS = 3600;
const MAX_STEPS = 50;
const MAX_STEP_SECONDS = 7 * 86_400;

export type RetryInput = {
  attempt: number;
  schedule: readonly number[];
  retryAfter?: string | null | undefined;
  now: Date;
  random: () => number;
};
