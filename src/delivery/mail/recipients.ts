import { addressKey } from '../../domain/addresses/email-address.ts';
import type { EmailDelivery } from '../../domain/definition/definition.ts';
import type { Form } from '../../store/forms/forms.ts';
import type { ConfirmedRecipient } from '../../store/mail/mail-recipients.ts';
import type { DeliverySettings } from '../options.ts';
import type { Reader } from './submission-mails.ts';

/**
 * Who gets a form's submissions by email: those that the definition has, or else the owner, and those beside them that
 * the owner has added. All but the owner, who confirms by another link, are among the confirmed `recipients`. While none
 * of those that the definition has confirmed, the owner gets them: else nobody would learn of a response.
 */
export function recipientsOf(form: Form, { to }: EmailDelivery, recipients: ConfirmedRecipient[]): string[] {
  const own = recipients.filter(({ formId }) => formId === form.id);
  const confirmed = new Set(own.map(({ address }) => address));
  const owner = form.ownerEmail === null ? [] : [form.ownerEmail];
  const ready = to?.filter((each) => isOwner(form, each) || confirmed.has(addressKey(each))) ?? [];
  const named = ready.length > 0 ? ready : owner;
  const known = new Set(named.map(addressKey));
  return [...named, ...own.flatMap(({ address, addedAs }) => (known.has(address) ? [] : (addedAs ?? [])))];
}

/**
 * As which reader an address gets an email of a submission that was queued for it, and how the form writes the address;
 * undefined if it no longer may. The owner may, also after a recipient that the definition has confirmed in the meantime.
 */
export function readerOf(
  settings: Pick<DeliverySettings, 'ownerConfirmation'>,
  form: Form,
  delivery: EmailDelivery,
  recipients: ConfirmedRecipient[],
  to: string,
): { reader: Reader; to: string } | undefined {
  const isSame = (each: string) => addressKey(each) === addressKey(to);
  const written = recipientsOf(form, delivery, recipients).find(isSame);
  if (isOwner(form, to)) {
    const hasConfirmed =
      isOwnerConfirmed(form, settings) || recipients.some(({ address }) => isSame(address));
    return { reader: hasConfirmed ? 'owner' : 'unconfirmed', to: written ?? form.ownerEmail ?? to };
  }
  if (written === undefined) return undefined;
  return { reader: delivery.to?.some(isSame) === true ? 'named' : 'added', to: written };
}

/** Whether this is the address that owns the form, in whatever way it is written. */
export function isOwner({ ownerEmail }: Form, to: string): boolean {
  return ownerEmail !== null && addressKey(ownerEmail) === addressKey(to);
}

/** Whether a form's owner gets its emails in full: the address has confirmed, or none has to. */
export function isOwnerConfirmed(
  { ownerConfirmedAt }: Pick<Form, 'ownerConfirmedAt'>,
  { ownerConfirmation }: Pick<DeliverySettings, 'ownerConfirmation'>,
): boolean {
  return ownerConfirmedAt !== null || !ownerConfirmation;
}
