import type { ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { ownerOf } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import { insertEvents } from '../../store/events.ts';
import { addRecipient, removeRecipient } from '../../store/mail/mail.ts';
import { type OwnedForm, proposeOwner } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { countRequest } from '../forms/confirmation-mail.ts';
import { formEvents } from '../forms/form-events.ts';
import { requireEmail } from '../forms/form-request.ts';
import { confirmedForm, lockForOwner } from './owned-form.ts';

/** The RPCs by which an owner lets others get a form's mails, or hands the form over. */
export function peopleMethods(context: ServiceContext): PeopleMethods {
  const { database, forms, now, notifyWorkers, audit } = context;

  async function deliveryOf({ currentVersionId }: OwnedForm) {
    return (await forms.version(currentVersionId)).definition.delivery;
  }

  return {
    async addFormRecipient({ formId, email }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      requireEmail(email);
      if ((await deliveryOf(form)).type !== 'email') {
        throw failed(Reason.CONFLICT, 'The submissions of this form are sent to a webhook, not by mail');
      }
      const asked = formEvents.recipientsAdded(form, new Date(now()), [email]);
      await countRequest(context, form, { call, countedAs: asked.id });
      const outcome = await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        const added = await addRecipient(tx, { formId, address: email, max: MAX_RECIPIENTS });
        if (added === 'added') await insertEvents(tx, [asked]);
        if (added !== 'full') await audit.change(tx, call, { projectId: form.projectId, formId });
        return added;
      });
      if (outcome === 'full')
        throw failed(Reason.CONFLICT, `A form has at most ${MAX_RECIPIENTS} added recipients`);
      notifyWorkers();
      return {};
    },

    async removeFormRecipient({ formId, email }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      requireEmail(email);
      const delivery = await deliveryOf(form);
      const named = delivery.type === 'email' ? (delivery.to ?? []) : [];
      const inDefinition = named.some((address) => addressKey(address) === addressKey(email));
      await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        await removeRecipient(tx, { formId, address: email, inDefinition });
        await audit.change(tx, call, { projectId: form.projectId, formId });
      });
      return {};
    },

    async offerOwnedForm({ formId, email }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      requireEmail(email);
      const asked = formEvents.ownerChangeRequested(form, new Date(now()), email);
      await countRequest(context, form, { call, countedAs: asked.id });
      await database.transaction(async (tx) => {
        if (!(await proposeOwner(tx, form.projectId, formId, email, form.ownerEmail))) throw notFound('form');
        await insertEvents(tx, [asked]);
        await audit.change(tx, call, { projectId: form.projectId, formId });
      });
      notifyWorkers();
      return {};
    },
  };
}

/** Twice what a definition can name. */
const MAX_RECIPIENTS = 10;

type PeopleMethods = Pick<
  ServiceImpl<typeof OwnersService>,
  'addFormRecipient' | 'removeFormRecipient' | 'offerOwnedForm'
>;
