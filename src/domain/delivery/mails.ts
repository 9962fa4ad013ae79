import * as pb from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { mailboxOf } from '../addresses/email-address.ts';
import { isKeyless } from '../ids.ts';

/** What mails there are, by the name that is stored with them and that REST shows, as messages name them. */
const mailKinds = {
  owner: pb.MailKind.OWNER,
  notice: pb.MailKind.NOTICE,
  autoresponse: pb.MailKind.AUTORESPONSE,
  confirmation: pb.MailKind.CONFIRMATION,
  recipient_confirmation: pb.MailKind.RECIPIENT_CONFIRMATION,
  owner_change: pb.MailKind.OWNER_CHANGE,
  webhook_off: pb.MailKind.WEBHOOK_OFF,
  demo: pb.MailKind.DEMO,
  sign_in: pb.MailKind.SIGN_IN,
  owner_changed: pb.MailKind.OWNER_CHANGED,
} as const;

/** The kind of a stored mail; unspecified if only another version knows it. */
export function mailKindOf(name: string): pb.MailKind {
  return isMailKind(name) ? mailKinds[name] : pb.MailKind.UNSPECIFIED;
}

/** The name of the kind that a message has; empty for none, or one of a newer service. */
export function mailKindNameOf(kind: pb.MailKind): string {
  return Object.keys(mailKinds).find((name) => mailKindOf(name) === kind) ?? '';
}

function isMailKind(name: string): name is MailKind {
  return Object.hasOwn(mailKinds, name);
}

export type MailKind = keyof typeof mailKinds;

/**
 * What a mail that asks an address to confirm something about a form counts against, in the order in which allowances
 * are taken. What strangers ask in the name of forms made without a key doesn't use up what owners with a key may ask.
 */
export function requestAllowances(form: Origin, address: string): RequestAllowance[] {
  const kind = isKeyless(form) ? KEYLESS : 'request';
  return [
    { holder: mailboxOf(address), kind, limit: REQUESTS_A_DAY },
    ...(form.createdFrom === null ? [] : [strangersAllowance(form.createdFrom)]),
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
