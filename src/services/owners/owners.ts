import type { ServiceImpl } from '@connectrpc/connect';
import type { OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { ownerOf } from '../../rpc/context.ts';
import { releaseWaitingMail } from '../../store/delivery-removal.ts';
import { confirmOwner, listOwnedForms } from '../../store/owners.ts';
import type { ServiceContext } from '../context.ts';
import { pageRequestOf } from '../request-values.ts';
import { logAction } from './log-action.ts';
import { anyOwnedForm, confirmedForm, ownedFormToMessage } from './owned-form.ts';
import { submissionMethods } from './owned-submissions.ts';
import { sessionMethods } from './owner-sessions.ts';

/** Lets the owners of forms, who sign in by mailed links, read and manage what they own. */
export function ownersService(context: ServiceContext): ServiceImpl<typeof OwnersService> {
  const { database, forms, notifyWorkers } = context;
  return {
    ...sessionMethods(context),
    ...submissionMethods(context),

    async listOwnedForms(request, call) {
      const owner = ownerOf(call);
      const page = await listOwnedForms(database, owner.address, pageRequestOf(request, 'form'));
      logAction(context, call, owner, 'list forms');
      return {
        forms: page.items.map((form) => ownedFormToMessage(form)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async getOwnedForm({ formId }, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, formId);
      const { definition } = await forms.version(form.currentVersionId);
      logAction(context, call, owner, 'read form', { formId });
      return { form: ownedFormToMessage(form, definition) };
    },

    async confirmOwnedForm({ formId }, call) {
      const owner = ownerOf(call);
      const { id, ownerEmail: address } = await anyOwnedForm(database, owner, formId);
      await confirmOwner(database, id, address);
      await releaseWaitingMail(database, { formId: id, address });
      notifyWorkers();
      logAction(context, call, owner, 'confirm form', { formId });
      return {};
    },
  };
}
