/** Why a notification of a session was not sent; what reads a session finds what became of it by these. */
export const notSent = {
  /** Nobody needs it any more: no trace of it is kept. */
  ended: 'Not sent: the session has ended.',
  closed: 'Not sent: the form takes no submissions any more.',
  keyGone: 'Not sent: the key that asked is gone, or may not notify anybody any more.',
  gone: 'Not sent: the session is gone.',
  tooMany: 'Waits: the address was asked often today.',
  strangers: 'Waits: the key has mailed many addresses today that have not confirmed anything.',
} as const;

/** Of any mail: its address has stopped it. */
export const MAIL_STOPPED = 'The address wants no more mail.';
