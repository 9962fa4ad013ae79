/** Why a notification of a session was not sent; what reads a session finds what became of it by these. */
export const notSent = {
  /** Nobody needs it any more: no trace of it is kept. */
  ended: 'Not sent: the session has ended.',
  closed: 'Not sent: the form no longer accepts responses.',
  keyGone: 'Not sent: the key that asked is gone, or may not notify anybody any more.',
  gone: 'Not sent: the session is gone.',
  tooMany: 'Waits: the address was asked often today.',
  strangers: 'Waiting: today the key has emailed too many addresses that have not confirmed anything.',
} as const;

/** Of any mail: its address has stopped it. */
export const MAIL_STOPPED = 'The address has stopped these emails.';
