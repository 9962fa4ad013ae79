import { addressKey } from '../../domain/addresses/email-address.ts';
import type { EmailDelivery } from '../../domain/definition/definition.ts';
import type { Form } from '../../store/forms/forms.ts';
import type { ConfirmedRecipient } from '../../store/mail/mail-recipients.ts';
import type { DeliverySettings } from '../options.ts';
import type { Reader } from './submission-mails.ts';

/**
 * Who gets a form's submissions by email, and as which reader: those that the definition has, or else the owner, and
 * those beside them that the owner has added. All but the owner, who confirms by another link, are among the confirmed
 * `recipients`.
 */
export function recipientsOf(
  settings: Pick<DeliverySettings, 'ownerConfirmation'>,
  form: Form,
  delivery: EmailDelivery,
  recipients: ConfirmedRecipient[],
): { to: string; reader: Reader }[] {
  const own = recipients.filter(({ formId }) => formId === form.id);
  const confirmed = new Set(own.map(({ address }) => address));
  const isOwner = (to: string) => form.ownerEmail !== null && addressKey(form.ownerEmail) === addressKey(to);
  const named =
    delivery.to?.filter((to) => isOwner(to) || confirmed.has(addressKey(to))) ??
    (form.ownerEmail === null ? [] : [form.ownerEmail]);
  const known = new Set(named.map(addressKey));
  const added = own.flatMap(({ address, addedAs }) => (known.has(address) ? [] : (addedAs ?? [])));

  const readerOf = (to: string): Reader => {
    const hasConfirmed = isOwnerConfirmed(form, settings) || confirmed.has(addressKey(to));
    if (isOwner(to)) return hasConfirmed ? 'owner' : 'unconfirmed';
    return delivery.to?.some((each) => addressKey(each) === addressKey(to)) === true ? 'named' : 'added';
  };
  return [...named, ...added].map((to) => ({ to, reader: readerOf(to) }));
}

/** Whether a form's owner gets its emails in full: the address has confirmed, or none has to. */
export function isOwnerConfirmed(
  { ownerConfirmedAt }: Pick<Form, 'ownerConfirmedAt'>,
  { ownerConfirmation }: Pick<DeliverySettings, 'ownerConfirmation'>,
): boolean {
  return ownerConfirmedAt !== null || !ownerConfirmation;
}
