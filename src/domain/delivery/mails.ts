import { isIP } from 'node:net';
import type * as pb from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { mailboxOf } from '../addresses/email-address.ts';
import type { NameIn } from '../enums.ts';
import { isKeyless } from '../ids.ts';
import { pseudonymOf, type SecretKey } from '../secrets/secret-key.ts';

/** The name of a kind of email, as it is stored and as REST shows it: that of the proto in lower case. */
export type MailKind = NameIn<typeof pb.MailKind>;

/**
 * How the service names itself to the mail server: by its host, or by the domain of its sender if that is no name on the
 * internet. The address in brackets that nodemailer gives where the machine has no full name is refused by some relays.
 */
export function ehloName({ baseUrl, mailFrom }: { baseUrl: string; mailFrom: string }): string {
  const host = new URL(baseUrl).hostname.replace(/\.$/, '');
  return host.includes('.') && isIP(host) === 0 ? host : mailFrom.slice(mailFrom.lastIndexOf('@') + 1);
}

/**
 * What an email that asks an address to confirm something about a form counts against, in the order in which allowances
 * are taken. What strangers ask in the name of forms made without a key doesn't use up what owners with a key may ask.
 */
export function requestAllowances(form: Origin, address: string): MailAllowance[] {
  const kind = isKeyless(form) ? KEYLESS : 'request';
  return [
    { holder: mailboxOf(address), kind, limit: REQUESTS_A_DAY },
    ...(form.createdFrom === null ? [] : [strangersAllowance(form.createdFrom)]),
  ];
}

/** What all emails count against that ask for something about forms made without a key and are caused by a network. */
export function strangersAllowance(createdFrom: string): MailAllowance {
  return { holder: createdFrom, kind: KEYLESS, limit: REQUESTS_A_DAY_FROM_CREATOR };
}

/** What a mailbox is counted as against `strangersOfKey`: once, by whichever of its addresses. */
export function notifiedAs(key: SecretKey, address: string): string {
  return pseudonymOf(key, 'notified', mailboxOf(address));
}

/**
 * What a key's emails about sessions count against: how many mailboxes a day that have not confirmed anything to the
 * service.
 */
export function strangersOfKey(keyId: string, limit: number): MailAllowance {
  return { holder: keyId, kind: 'session_strangers', limit };
}

/** What emails about sessions count against in a day, over all that ask a person something. */
export function questionsToMailbox(address: string): MailAllowance {
  return { holder: mailboxOf(address), kind: 'question', limit: QUESTIONS_A_DAY };
}

const KEYLESS = 'request_keyless';

/** To one mailbox over the whole service, no matter who asks. */
const QUESTIONS_A_DAY = 10;

/** To one mailbox over the whole service, so that nobody can flood a stranger by making many forms. */
export const REQUESTS_A_DAY = 3;

/** Caused by forms made without a key from one network. Less than what one client may make in an hour. */
const REQUESTS_A_DAY_FROM_CREATOR = 100;

type Origin = { createdBy: string; createdFrom: string | null };

/** How many such emails a mailbox gets, or a network causes, in a day. */
export type MailAllowance = { holder: string; kind: string; limit: number };
