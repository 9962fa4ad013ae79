import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { FormDefinition as DefinitionMessage } from '../../../gen/forms/v1/definition_pb.js';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { FormStatus } from '../../../gen/forms/v1/forms_pb.js';
import type { OwnedFormSchema } from '../../../gen/forms/v1/owners_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { definitionToMessage } from '../../domain/definition/definition-message.ts';
import type { Share } from '../../domain/definition/share.ts';
import { isId } from '../../domain/ids.ts';
import type { Owner } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import type { Queries, Transaction } from '../../store/database/database.ts';
import { findOwnedForm, lockOwnedForm, type OwnedForm } from '../../store/owners/owners.ts';

/** A form that the owner owns, confirmed or not. Throws NOT_FOUND, of another's form too. */
export async function anyOwnedForm(db: Queries, { address }: Owner, formId: string): Promise<OwnedForm> {
  const form = isId('form', formId) ? await findOwnedForm(db, address, formId) : null;
  if (form === null) throw notFound('form');
  return form;
}

/**
 * A form that the owner has confirmed to own: anybody can name a stranger as the owner of a form, who is not to
 * be shown its answers unasked. Throws NOT_FOUND and CONFLICT.
 */
export async function confirmedForm(db: Queries, owner: Owner, formId: string): Promise<OwnedForm> {
  const form = await anyOwnedForm(db, owner, formId);
  requireConfirmed(form);
  return form;
}

/**
 * Locks a form that its owner is about to change. Throws NOT_FOUND if somebody has taken it over since it was read, or
 * it is gone.
 */
export async function lockForOwner(tx: Transaction, form: OwnedForm): Promise<void> {
  if (!(await lockOwnedForm(tx, form))) throw notFound('form');
}

/** Throws CONFLICT unless the owner of a form has confirmed to own it. */
export function requireConfirmed({ ownerConfirmedAt }: OwnedForm): void {
  if (ownerConfirmedAt !== null) return;
  throw failed(Reason.CONFLICT, 'The address has not confirmed that it owns the form');
}

/** A form as its owner sees it; lists leave the definition and the `facts` out. */
export function ownedFormToMessage(
  form: OwnedForm,
  definition?: FormDefinition,
  facts: FormFacts = {},
): MessageInitShape<typeof OwnedFormSchema> {
  return {
    ...facts,
    id: form.id,
    name: form.name,
    status: form.status === 'archived' ? FormStatus.ARCHIVED : FormStatus.PUBLISHED,
    confirmed: form.ownerConfirmedAt !== null,
    createTime: timestampFromDate(form.createdAt),
    acceptedCount: form.accepted,
    spamCount: form.spam,
    ...(form.closedAt !== null && { closeTime: timestampFromDate(form.closedAt) }),
    ...(definition !== undefined && { definition: withoutDelivery(definition) }),
  };
}

/** What is asked, without where answers go: URLs of receivers are their makers' alone. */
function withoutDelivery(definition: FormDefinition): Omit<DefinitionMessage, 'delivery' | '$typeName'> {
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
};
