import type { HandlerContext } from '@connectrpc/connect';
import { ConfirmationState } from '../../../gen/headlessforms/v1/forms_pb.js';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { requestAllowances, strangersAllowance } from '../../domain/delivery/mails.ts';
import { limited } from '../../domain/errors/failure.ts';
import { isKeyless } from '../../domain/ids.ts';
import { pseudonymOf } from '../../domain/secrets/secret-key.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import type { Form } from '../../store/forms/forms.ts';
import { isMailStopped } from '../../store/mail/mail.ts';
import { takeMailAllowances } from '../../store/mail/mail-allowances.ts';
import type { ServiceContext } from '../context.ts';

/**
 * What will become of the mail that asks a form's owner to confirm. It is counted against what the address may be asked
 * today, as `countedAs`, so that what is said of it stays true. Anybody makes forms without a key: of these nothing is
 * said that depends on the address, after the same work.
 */
export async function foreseeConfirmation(
  { database, settings }: ServiceContext,
  form: Pick<Form, 'id' | 'createdBy' | 'createdFrom'>,
  { address, countedAs }: { address: string; countedAs: string },
): Promise<ConfirmationState> {
  const isStopped = await isMailStopped(database, { address, formId: form.id, unasked: true });
  const usedUp = await takeMailAllowances(database, countedAs, requestAllowances(form, address));
  if (isStopped && !isKeyless(form)) return ConfirmationState.STOPPED;
  if (usedUp !== null && !isKeyless(form)) return ConfirmationState.LATER;
  return settings.smtpUrl === undefined ? ConfirmationState.WRITTEN : ConfirmationState.ON_ITS_WAY;
}

/**
 * Counts that the owner of a form lets somebody be asked about it, as `countedAs`. Of forms made without a key these
 * are caused by a stranger, who can confirm any number of addresses of their own: they count as those do that ask such
 * a stranger's owners to confirm. Throws RATE_LIMITED if there were too many today.
 */
export async function countRequest(
  context: ServiceContext,
  form: Pick<Form, 'createdBy'>,
  { call, countedAs }: { call: HandlerContext; countedAs: string },
): Promise<void> {
  if (!isKeyless(form)) return;
  const allowance = strangersAllowance(creatorOf(context, call));
  const usedUp = await takeMailAllowances(context.database, countedAs, [allowance]);
  if (usedUp === null) return;
  const message = 'Too many people were asked by mail from this address today';
  throw limited('mails_to_strangers', message, usedUp.waitMs / 1000);
}

/** What the mails are counted by that a client without a key causes. */
export function creatorOf({ secretKey }: Pick<ServiceContext, 'secretKey'>, call: HandlerContext): string {
  return pseudonymOf(secretKey, 'created-from', networkOf(clientAddressOf(call)));
}

/** What becomes of the confirmation, in words. `answersWait`: answers are mailed once the address has confirmed. */
export function confirmationInWords(state: ConfirmationState, email: string, answersWait: boolean): string {
  return ['The form is published.', sentences[state](email), ...(answersWait ? [WAITS] : [])].join(' ');
}

const sentences: Record<ConfirmationState, (email: string) => string> = {
  [ConfirmationState.UNSPECIFIED]: () => '',
  [ConfirmationState.ON_ITS_WAY]: (email) => `A confirmation is on its way to ${email}.`,
  [ConfirmationState.LATER]: (email) =>
    `The confirmation to ${email} waits until another day: that address was asked to confirm often today.`,
  [ConfirmationState.STOPPED]: (email) =>
    `${email} gets no confirmation, because mail of this service was stopped for that address. The link at the end of any such mail starts it again.`,
  [ConfirmationState.WRITTEN]: (email) =>
    `The confirmation to ${email} is written to a file, because SMTP_URL is not set.`,
};

/** Said of forms made without a key that are delivered by mail. */
const WAITS =
  'If no email arrives, that address has stopped our emails or was asked too often today. Until it has confirmed, it gets at most 3 notices a day that answers wait; the answers follow after that.';
