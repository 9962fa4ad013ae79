import { addressKey, mailboxOf } from '../../domain/addresses/email-address.ts';
import {
  type MailAllowance,
  notifiedAs,
  questionsToMailbox,
  REQUESTS_A_DAY,
  requestAllowances,
  strangersOfKey,
} from '../../domain/delivery/mails.ts';
import { isKeyless, smallestIdAt } from '../../domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../domain/limits/limits.ts';
import { SIGN_IN_MAILS } from '../../domain/links.ts';
import type { Database } from '../../store/database/database.ts';
import type { Claim } from '../../store/deliveries/claimed.ts';
import { findNotified } from '../../store/deliveries/find-notified.ts';
import { type Form, findAnyForm } from '../../store/forms/forms.ts';
import { findFirstMaker } from '../../store/keys.ts';
import { takeMailAllowances } from '../../store/mail/mail-allowances.ts';
import { hasConfirmed, isMailStopped, listConfirmedRecipients } from '../../store/mail/mail-recipients.ts';
import { isCodeOpen } from '../../store/mail/mailed-links.ts';
import { findOwnerStanding } from '../../store/owners/owners.ts';
import type { DeliveryOptions } from '../options.ts';
import { type NothingSent, refused, waits } from '../outcome.ts';
import { queuedMailSchema } from './compose.ts';
import { isOwner, isOwnerConfirmed } from './recipients.ts';

/**
 * Decides whether an email may go to an address now, and counts it if so; retries are not counted again.
 *
 * Returns null if it may go. Else it waits until the address has confirmed or the next day begins (UTC), or it
 * will never go.
 */
export async function findMailRefusal(
  options: MailLimitOptions,
  claim: Claim,
  addressee: Addressee,
): Promise<NothingSent | null> {
  const { to } = addressee;
  if (claim.kind === 'sign_in') return refuseSignIn(options, claim, to);
  const refuse = limits.get(claim.kind);
  const form = refuse && (await findAnyForm(options.database, claim.formId));
  if (form === null) return refused('form_deleted');
  // Asked first, and by few queries: thousands of answers can wait for one owner.
  const wait = form && claim.kind === 'owner' ? await waitForOwner(options, claim, form, to) : null;
  if (wait !== null) return wait;

  const unasked = form !== undefined && claim.kind !== 'owner';
  // Emails that are about no form are about the project.
  const formId = claim.formId === '' ? claim.projectId : claim.formId;
  if (await isMailStopped(options.database, { address: to, formId, unasked })) {
    return refused('mail_stopped');
  }
  return refuse && form ? refuse(options, claim, form, addressee) : null;
}

/**
 * Answers to a form made without a key go to nobody but an owner who has confirmed, or need not, and to those whom this
 * owner has added and who have confirmed, too.
 */
async function waitForOwner(
  { database, settings, now }: MailLimitOptions,
  claim: Claim,
  form: Form,
  to: string,
): Promise<NothingSent | null> {
  if (!isKeyless(form)) return null;
  if (isOwnerConfirmed(form, settings) && (isOwner(form, to) || (await isRecipient(database, form, to))))
    return null;
  return isOlder(claim, settings.retentionDays, now())
    ? refused('confirmed_too_late')
    : waits('owner_unconfirmed', DAY_MS);
}

/**
 * Answers go to nobody but who is the owner, or a confirmed recipient, by now; and a few of a form made with a key to
 * an owner who has not confirmed.
 */
const refuseOwnerMail: RefuseMail = async ({ database, settings }, claim, form, { to }) => {
  if (isOwner(form, to)) {
    if (claim.step > 0 || isOwnerConfirmed(form, settings)) return null;
  } else {
    return (await isRecipient(database, form, to)) ? null : refused('no_recipient');
  }
  const allowance = { holder: mailboxOf(to), kind: 'owner', limit: UNCONFIRMED_A_DAY };
  const usedUp = await takeMailAllowances(database, claim.id, [allowance]);
  return usedUp && waits('owner_unconfirmed', usedUp.waitMs);
};

/** Notices that are too many are dropped: the next answer a day later causes another. */
const refuseNotice: RefuseMail = async ({ database, settings }, claim, form, { to }) => {
  if (!isOwner(form, to) || isOwnerConfirmed(form, settings)) return refused('nothing_waits');
  if (claim.step > 0) return null;
  const { createdFrom } = form;
  const usedUp = await takeMailAllowances(database, claim.id, [
    { holder: mailboxOf(to), kind: 'notice', limit: NOTICES_A_DAY },
    ...(createdFrom === null
      ? []
      : [{ holder: createdFrom, kind: 'notice', limit: NOTICES_A_DAY_FROM_CREATOR }]),
  ]);
  return usedUp && refused('notices_used_up');
};

/** A request that was counted when it was made is not counted again. */
const refuseRequest: RefuseMail = async ({ database, now }, claim, form, { to, countedAs = claim.id }) => {
  if (claim.step > 0) return null;
  if (isOlder(claim, REQUEST_DAYS, now())) return refused('asked_too_often');
  const usedUp = await takeMailAllowances(database, countedAs, requestAllowances(form, to));
  return usedUp && waits('requests_used_up', usedUp.waitMs);
};

/** Nobody is emailed of a session that has ended. What is too much for today waits for another day. */
const refuseQuestion: RefuseMail = async (
  { database, secretKey, settings },
  { id, projectId, step, content },
  _form,
  { to },
) => {
  const notified = await findNotified(database, content.eventId ?? '');
  if ('refusal' in notified) return refused(notified.refusal);
  if (await isMailStopped(database, { address: to, formId: projectId })) return refused('mail_stopped');
  if (step > 0) return null;
  const { keyId = '' } = notified.session.notify ?? {};
  const isStranger = !(await hasConfirmed(database, to));
  const strangers = isStranger
    ? await takeMailAllowances(database, notifiedAs(secretKey, to), [
        strangersOfKey(await findFirstMaker(database, keyId), settings.notifyMailboxesPerKey),
      ])
    : null;
  if (strangers !== null) return waits('strangers_used_up', strangers.waitMs);
  const usedUp = await takeMailAllowances(database, id, [questionsToMailbox(to)]);
  return usedUp && waits('questions_used_up', usedUp.waitMs);
};

/** Codes were counted when they were asked for; the person who asked for one that is over has gone. */
const refuseCode: RefuseMail = async ({ database }, { content }) => {
  const { codeId = '' } = mailIn(content);
  return (await isCodeOpen(database, codeId)) ? null : refused('code_over');
};

/** What limits each kind of email about a form. The others go to who has asked for them. */
const limits = new Map<string, RefuseMail>([
  ['owner', refuseOwnerMail],
  ['notice', refuseNotice],
  ['confirmation', refuseRequest],
  ['recipient_confirmation', refuseRequest],
  ['owner_change', refuseRequest],
  ['question', refuseQuestion],
  ['respondent_code', refuseCode],
]);

/**
 * Links to sign in go to owners alone. Anybody can ask for one in another's name, so that a mailbox that has not
 * confirmed to own a form, which strangers can name it for, gets fewer.
 */
async function refuseSignIn(
  { database, now }: MailLimitOptions,
  claim: Claim,
  to: string,
): Promise<NothingSent | null> {
  if (claim.id < smallestIdAt('dlv', now() - SIGN_IN_WAIT_MS)) return refused('asked_too_long_ago');
  const standing = await findOwnerStanding(database, addressKey(to));
  if (standing === 'none') return refused('no_owner');
  const unasked = standing === 'unconfirmed';
  if (await isMailStopped(database, { address: to, formId: SIGN_IN_MAILS, unasked })) {
    return refused('mail_stopped');
  }
  if (claim.step > 0) return null;
  const limit = unasked ? REQUESTS_A_DAY : SIGN_INS_A_DAY;
  const usedUp = await takeMailAllowances(database, claim.id, signInAllowances(claim, mailboxOf(to), limit));
  return usedUp && refused('sign_ins_used_up');
}

/** What others ask for doesn't use up the emails for a device that has signed in, nor one client all of the others. */
function signInAllowances({ content }: Claim, holder: string, limit: number): MailAllowance[] {
  const { isKnown, askedFrom } = mailIn(content);
  if (isKnown === true) return [{ holder, kind: 'sign_in_known', limit }];
  const all = { holder, kind: 'sign_in', limit };
  if (askedFrom === undefined) return [all];
  return [all, { holder, kind: `sign_in ${askedFrom}`, limit: Math.ceil(limit / 2) }];
}

function mailIn(content: Claim['content']) {
  return queuedMailSchema.parse(content.channel === 'mail' ? content.mail : undefined);
}

async function isRecipient(database: Database, { id }: Form, to: string): Promise<boolean> {
  const recipients = await listConfirmedRecipients(database, [id]);
  return recipients.some(({ address }) => address === addressKey(to));
}

function isOlder({ id }: Claim, days: number, now: number): boolean {
  return id < smallestIdAt('dlv', now - days * DAY_MS);
}

/** To one mailbox over the whole service. */
const NOTICES_A_DAY = 3;

/** Caused by forms made without a key from one network. */
const NOTICES_A_DAY_FROM_CREATOR = 20;

/** Of forms made with a key: enough to see that a form works before confirming. */
const UNCONFIRMED_A_DAY = 20;

/** To one mailbox, of owners who have confirmed, and as many for their devices. */
const SIGN_INS_A_DAY = 10;

/** The person who asked has gone. */
const SIGN_IN_WAIT_MS = HOUR_MS;

/** What waited for longer is not wanted: after a thousand requests in a day, others would follow for a year. */
const REQUEST_DAYS = 7;

export type MailLimitOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'settings' | 'now'>;

/** `countedAs` is what the email was counted as before, if it was. */
type Addressee = { to: string; countedAs?: string };

type RefuseMail = (
  options: MailLimitOptions,
  claim: Claim,
  form: Form,
  addressee: Addressee,
) => Promise<NothingSent | null>;
