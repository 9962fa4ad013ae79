import type { FinalCause, WaitingCause } from '../domain/delivery/causes.ts';

/** What came of an attempt, by how far it got. What is stored, counted and tried again follows from that. */
export type Outcome =
  | Taken
  | RefusedByAnswer
  /** No answer came that can be read, or no connection: it may have arrived. */
  | ({ stage: 'sent'; responseStatus?: undefined } & Omit<AnswerFacts, 'responseStatus'> & FailureFacts)
  | NothingSent;

/** The receiver took it, or the mail server. */
type Taken = { stage: 'answered'; next: 'done' } & AnswerFacts;

type RefusedByAnswer = {
  stage: 'answered';
  /**
   * What follows from the answer:
   *
   * - `retry`: it is tried again by the schedule.
   * - `once more`: it was probably processed; there is one more attempt, in an hour.
   * - `wait`: the mail server takes no connection now; this takes no step of the schedule, for as long as that lasts.
   * - `end`: trying again can't help.
   * - `turn off`: the receiver wants no more.
   */
  next: 'retry' | 'once more' | 'wait' | 'end' | 'turn off';
  /** The `Retry-After` header of the answer. */
  retryAfter?: string | undefined;
} & AnswerFacts &
  FailureFacts;

/** Nothing was sent: it waits, or is given up. */
export type NothingSent =
  | { stage: 'before sending'; cause: WaitingCause; waitMs: number }
  | { stage: 'before sending'; cause: FinalCause };

/** Nothing was sent, and nothing will be. */
export function refused(cause: FinalCause): NothingSent {
  return { stage: 'before sending', cause };
}

/** Nothing is sent for so many milliseconds, since a limit is reached. */
export function waits(cause: WaitingCause, waitMs: number): NothingSent {
  return { stage: 'before sending', cause, waitMs };
}

/** What the receiver answered: an HTTP or SMTP status, and the beginning of its text. */
type AnswerFacts = { responseStatus?: number | undefined; responseBody?: string | undefined };

type FailureFacts = {
  /** Why, in words for the owner of the webhook. Never contains a private address. */
  error: string;
  facts?: LoggedFacts;
};

/** What the log says of an attempt beside its result: the cause and what the operator can do. */
export type LoggedFacts = { err?: unknown; code?: unknown; hint?: string };
