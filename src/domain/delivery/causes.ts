/** Why a delivery waits, by the code that is stored of it, in the words that people see. */
const waitingCauses = {
  postponed: 'Waits: the last attempts of its webhook failed.',
  calls_used_up: 'Waits: too many calls to this address.',
  not_tried: 'Waits: the service could not try it.',
  owner_unconfirmed: 'Waits: the owner has not confirmed the address.',
  requests_used_up: 'Waits: the address was asked to confirm often today.',
  questions_used_up: 'Waits: the address was asked often today.',
  strangers_used_up:
    'Waiting: today the key has emailed too many addresses that have not confirmed anything.',
} as const;

/** As `waitingCauses`, why a delivery was given up before anything was sent. */
const finalCauses = {
  never_tried: 'The service could not try it.',
  event_gone: 'The event is gone.',
  webhook_off: 'The webhook is turned off.',
  url_refused: 'The URL may not be called.',
  body_too_large: 'The template makes a body of more than 1 MiB.',
  no_address: 'Not an address.',
  mail_not_made: 'The service could not make the email.',
  subject_gone: 'What it is about was removed, or is no longer for this address.',
  form_deleted: 'The form was deleted.',
  /** Of any email: its address has stopped it. */
  mail_stopped: 'The address has stopped these emails.',
  confirmed_too_late: 'The owner did not confirm the address in time.',
  no_recipient: 'The address gets no answers any more.',
  nothing_waits: 'Nothing waits for the address.',
  notices_used_up: 'Not sent: there were enough notices today.',
  asked_too_often: 'Not sent: the address was asked too often.',
  code_over: 'The code has expired, or was replaced.',
  asked_too_long_ago: 'Asked for too long ago.',
  no_owner: 'The address owns no form.',
  sign_ins_used_up: 'Not sent: the daily limit of these emails is reached.',
  /** Nobody needs the notification any more: no trace of it is kept. */
  session_ended: 'Not sent: the session has ended.',
  form_closed: 'Not sent: the form no longer accepts responses.',
  key_gone: 'Not sent: the key that asked is gone, or may not notify anybody any more.',
  session_gone: 'Not sent: the session is gone.',
} as const;

const words: Record<Cause, string> = { ...waitingCauses, ...finalCauses };

/** What is stored of a cause: its code, and its words. */
export function because(cause: Cause): { cause: Cause; error: string } {
  return { cause, error: words[cause] };
}

/**
 * Whether a stored delivery waits, or was given up, for a cause. Instances of before the column `cause` store the words
 * alone: these can be left out of this after the next release.
 */
export function isCausedBy(
  expected: Cause,
  { cause, error }: { cause: string | null; error: string | null },
): boolean {
  return cause === null ? error === words[expected] : cause === expected;
}

export type WaitingCause = keyof typeof waitingCauses;
export type FinalCause = keyof typeof finalCauses;
export type Cause = WaitingCause | FinalCause;
