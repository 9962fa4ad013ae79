import type { ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { ownerOf } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import { releaseWaitingMail } from '../../store/deliveries/delivery-removal.ts';
import { setFormClosed } from '../../store/forms/forms.ts';
import { isMailStopped, listAddedRecipients, startMail, stopMail } from '../../store/mail/mail.ts';
import { confirmOwner, listOwnedForms } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { shareOfForm } from '../forms/share-message.ts';
import { pageRequestOf } from '../request-values.ts';
import { peopleMethods } from './form-people.ts';
import { anyOwnedForm, confirmedForm, lockForOwner, ownedFormToMessage } from './owned-form.ts';
import { submissionMethods } from './owned-submissions.ts';
import { sessionMethods } from './owner-sessions.ts';
import { createScanner } from './scan.ts';
import { statisticsMethods } from './statistics.ts';

/** Lets the owners of forms, who sign in by mailed links, read and manage what they own. */
export function ownersService(context: ServiceContext): ServiceImpl<typeof OwnersService> {
  const { database, forms, notifyWorkers, audit } = context;
  const scan = createScanner(database);
  return {
    ...sessionMethods(context),
    ...submissionMethods(context, scan),
    ...statisticsMethods(context, scan),
    ...peopleMethods(context),

    async listOwnedForms(request, call) {
      const owner = ownerOf(call);
      const page = await listOwnedForms(database, owner.address, pageRequestOf(request, 'form'));
      return {
        forms: page.items.map((form) => ownedFormToMessage(form)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async getOwnedForm({ formId }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      const { definition } = await forms.version(form.currentVersionId);
      const mailsStopped = await isMailStopped(database, { address: form.ownerEmail, formId });
      return {
        form: ownedFormToMessage(form, definition, {
          mailsStopped,
          recipients: await listAddedRecipients(database, formId),
          offeredTo: form.pendingOwnerEmail ?? '',
          usesWebhook: definition.delivery.type === 'webhook',
          ...(form.status === 'published' && { share: await shareOfForm(context, formId, definition) }),
        }),
      };
    },

    async closeOwnedForm({ formId }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      if (form.status === 'archived') throw failed(Reason.CONFLICT, 'The form is archived for good');
      await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        await setFormClosed(tx, formId, true);
        await audit.change(tx, call, { projectId: form.projectId, formId });
      });
      forms.forget(formId);
      return {};
    },

    async reopenOwnedForm({ formId }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        await setFormClosed(tx, formId, false);
        await audit.change(tx, call, { projectId: form.projectId, formId });
      });
      forms.forget(formId);
      return {};
    },

    async setOwnedFormMails({ formId, stopped }, call) {
      const owner = ownerOf(call);
      const { ownerEmail: address, projectId } = await confirmedForm(database, owner, formId);
      const action = stopped ? 'form.mails_stopped' : 'form.mails_started';
      await database.transaction(async (tx) => {
        await (stopped ? stopMail : startMail)(tx, { address, formId });
        await audit.change(tx, call, { projectId, formId, action });
      });
      return {};
    },

    async confirmOwnedForm({ formId }, call) {
      const owner = ownerOf(call);
      const { id, ownerEmail: address, projectId } = await anyOwnedForm(database, owner, formId);
      await database.transaction(async (tx) => {
        if (!(await confirmOwner(tx, id, address))) throw notFound('form');
        await releaseWaitingMail(tx, { formId: id, address });
        await audit.change(tx, call, { projectId, formId });
      });
      notifyWorkers();
      return {};
    },
  };
}
