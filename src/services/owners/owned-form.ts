import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { FormDefinition as DefinitionMessage } from '../../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { FormAvailability, OwnedFormSchema } from '../../../gen/headlessforms/v1/owners_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { definitionToMessage } from '../../domain/definition/definition-proto.ts';
import { recipientsIn } from '../../domain/definition/delivery.ts';
import type { Share } from '../../domain/definition/share.ts';
import { enumValue } from '../../domain/enums.ts';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { isId } from '../../domain/ids.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { ownerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { releaseWaitingMail } from '../../store/deliveries/postpone.ts';
import { insertEvents } from '../../store/events.ts';
import { findAnyForm } from '../../store/forms/forms.ts';
import { removeAddedRecipients } from '../../store/mail/mail-recipients.ts';
import { voidMailedLinks } from '../../store/mail/mailed-links.ts';
import {
  closeOwnerSessions,
  confirmOwner,
  findOwnedForm,
  lockOwnedForm,
  type OwnedForm,
} from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import {
  availabilityOf,
  definitionInUse,
  type LiveVersion,
  submissionLimitOf,
} from '../forms/form-access.ts';
import { formEvents } from '../forms/form-rows.ts';

/** A form that the owner owns, confirmed or not. Throws NOT_FOUND, of another's form too. */
export async function ownerForm(
  { database }: ServiceContext,
  call: HandlerContext,
  formId: string,
  named = 'form',
): Promise<OwnedForm> {
  const form = isId('form', formId) ? await findOwnedForm(database, ownerOf(call).address, formId) : null;
  if (form === null) throw notFound(named);
  return form;
}

/**
 * A form that the owner has confirmed to own: anybody can name a stranger as the owner of a form, who is not to
 * be shown its answers unasked. Throws NOT_FOUND, for `named`, what is searched for by its form, and CONFLICT.
 */
export async function confirmedForm(
  context: ServiceContext,
  call: HandlerContext,
  formId: string,
  named?: string,
): Promise<OwnedForm> {
  const form = await ownerForm(context, call, formId, named);
  if (form.ownerConfirmedAt !== null) return form;
  throw failed(Reason.CONFLICT, 'The address has not confirmed that it owns the form');
}

/**
 * Locks a form that its owner is about to change. Throws NOT_FOUND if somebody has taken it over since it was read, or
 * it is gone.
 */
export async function lockForOwner(tx: Transaction, form: OwnedForm): Promise<void> {
  if (!(await lockOwnedForm(tx, form))) throw notFound('form');
}

/**
 * Records that an address owns a form, confirmed by a link or by who has signed in with it. Anyone who owned it
 * before is told, signed out, and with their links voided; so go the recipients that they added, unless they are
 * kept. False if the address neither owns the form nor was asked to.
 */
export async function takeOwnership(
  tx: Transaction,
  { now }: Pick<ServiceContext, 'now'>,
  { formId, address, keepRecipients }: { formId: string; address: string; keepRecipients: boolean },
): Promise<boolean> {
  const former = await confirmOwner(tx, formId, address);
  if (former === null) return false;
  await releaseWaitingMail(tx, { formId, address });
  if (former.address === null || former.address === address) return true;
  await voidMailedLinks(tx, { address: former.address, formId });
  await closeOwnerSessions(tx, { address: addressKey(former.address) });
  const form = await findAnyForm(tx, formId);
  if (form === null) return true;
  if (!keepRecipients) {
    const { delivery } = await definitionInUse(tx, form);
    await removeAddedRecipients(tx, formId, recipientsIn(delivery));
  }
  // Who never confirmed did not know of the form.
  if (former.isConfirmed) {
    const facts = { address: former.address, next: address };
    await insertEvents(tx, [formEvents.ownerChanged(form, new Date(now()), facts)]);
  }
  return true;
}

/** Throws SIGN_IN_AGAIN if the owner has not signed in within some minutes: a browser left open must not do this. */
export function requireFreshSignIn(call: HandlerContext, now: number): void {
  if (now - ownerOf(call).signedInAt.getTime() <= FRESH_MS) return;
  throw failed(Reason.SIGN_IN_AGAIN, 'This needs a session of at most 15 minutes: sign in again');
}

const FRESH_MS = 15 * 60 * 1000;

/** A form as its owner sees it; lists leave the `facts` and its definition out. `now` is in milliseconds. */
export function ownedFormToMessage(
  form: OwnedForm,
  { definition }: LiveVersion,
  now: number,
  facts?: FormFacts,
): MessageInitShape<typeof OwnedFormSchema> {
  const standing = { ...form, version: { definition } };
  const { closesAt } = definition.settings;
  const limit = submissionLimitOf(standing);
  return rowToMessage(OwnedFormSchema, form, {
    ...facts,
    availability: enumValue(FormAvailability, availabilityOf(standing, now)),
    ...(closesAt !== undefined && { settingsCloseTime: timestampFromDate(new Date(closesAt)) }),
    ...(Number.isFinite(limit.max) && { submissionLimit: limit }),
    versionId: form.currentVersionId,
    keptIn: keeperOf(form),
    confirmed: form.ownerConfirmedAt !== null,
    acceptedCount: form.accepted,
    spamCount: form.spam,
    unreadCount: form.unread,
    readSubmissionId: form.readUpTo ?? '',
    ...(facts !== undefined && {
      definition: withoutDelivery(definition),
      ignoredNames: Object.entries(form.ignoredNames ?? {}).map(([name, { count, lastAt }]) => ({
        name,
        count,
        lastTime: timestampFromDate(new Date(lastAt)),
      })),
    }),
  });
}

/** Which file keeps a form, as far as it is known; empty if none does. */
export function keeperOf({ managedBy, key }: Pick<OwnedForm, 'managedBy' | 'key'>): string {
  if (managedBy === null || managedBy === '') return '';
  return key === null ? managedBy : `${managedBy.replace(/\/$/, '')}/${key}`;
}

/** What is asked, without where answers go: URLs of receivers are their makers' alone. */
export function withoutDelivery(
  definition: FormDefinition,
): Omit<DefinitionMessage, 'delivery' | '$typeName'> {
  const { delivery: _, $typeName: __, ...asked } = definitionToMessage(definition);
  return asked;
}

/** What is said of a form that is read alone. */
type FormFacts = {
  mailsStopped?: boolean;
  recipients?: { address: string; confirmed: boolean }[];
  offeredTo?: string;
  usesWebhook?: boolean;
  share?: Share;
  /** By field id, in the reader's language. */
  fieldLabels?: Record<string, string>;
  formerFieldIds?: string[];
};
