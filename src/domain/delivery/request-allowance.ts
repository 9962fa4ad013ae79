import { mailboxOf } from '../addresses/mailbox.ts';

/**
 * What a mail that asks an address to confirm something about a form counts against, in the order in which allowances
 * are taken. What strangers ask in the name of forms made without a key doesn't use up what owners with a key may ask.
 */
export function requestAllowances({ createdBy, createdFrom }: Origin, address: string): RequestAllowance[] {
  const kind = createdBy === 'public' ? KEYLESS : 'request';
  return [
    { holder: mailboxOf(address), kind, limit: REQUESTS_A_DAY },
    ...(createdFrom === null ? [] : [strangersAllowance(createdFrom)]),
  ];
}

/** What all mails count against that ask for something about forms made without a key and are caused by a network. */
export function strangersAllowance(createdFrom: string): RequestAllowance {
  return { holder: createdFrom, kind: KEYLESS, limit: REQUESTS_A_DAY_FROM_CREATOR };
}

const KEYLESS = 'request_keyless';

/** To one mailbox over the whole service, so that nobody can flood a stranger by making many forms. */
export const REQUESTS_A_DAY = 3;

/** Caused by forms made without a key from one network. Less than what one client may make in an hour. */
const REQUESTS_A_DAY_FROM_CREATOR = 100;

type Origin = { createdBy: string; createdFrom: string | null };

/** How many such mails a mailbox gets, or a network causes, in a day. */
type RequestAllowance = { holder: string; kind: string; limit: number };
