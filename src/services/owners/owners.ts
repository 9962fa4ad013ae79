import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { recipientsIn } from '../../domain/definition/delivery.ts';
import { translate } from '../../domain/definition/translate.ts';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { ownerOf } from '../../rpc/context.ts';
import { insertEvents } from '../../store/events.ts';
import { setFormClosed } from '../../store/forms/forms.ts';
import { listAskedFields } from '../../store/forms/versions.ts';
import {
  addRecipient,
  isMailStopped,
  listAddedRecipients,
  removeRecipient,
  startMail,
  stopMail,
} from '../../store/mail/mail-recipients.ts';
import { voidMailedLinks } from '../../store/mail/mailed-links.ts';
import { listOwnedForms, type OwnedForm, proposeOwner, withdrawOffer } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { countRequest } from '../forms/activation.ts';
import { shareOfForm } from '../forms/form-proto.ts';
import { formEvents } from '../forms/form-rows.ts';
import { keepReply } from '../idempotency.ts';
import { pageRequestOf, requireEmail } from '../request-values.ts';
import {
  confirmedForm,
  lockForOwner,
  ownedFormToMessage,
  ownerForm,
  requireFreshSignIn,
  takeOwnership,
} from './owned-form.ts';
import { submissionMethods } from './owned-submissions.ts';
import { textMethods } from './owned-texts.ts';
import { sessionMethods } from './owner-sessions.ts';
import { createScanner } from './search.ts';
import { statisticsMethods } from './statistics.ts';

/**
 * Lets the owners of forms, who sign in by emailed links, read and manage what they own, and let others get its
 * emails.
 */
export function ownersService(context: ServiceContext): ServiceImpl<typeof OwnersService> {
  const { database, forms, notifyWorkers, audit, now } = context;
  const scan = createScanner(database);
  return {
    ...sessionMethods(context),
    ...submissionMethods(context, scan),
    ...statisticsMethods(context, scan),
    ...textMethods(context),

    async listOwnedForms(request, call) {
      const owner = ownerOf(call);
      const page = await listOwnedForms(database, owner.address, pageRequestOf(request, 'form'));
      return {
        forms: await Promise.all(
          page.items.map(async (form) =>
            ownedFormToMessage(form, await forms.version(form.currentVersionId), now()),
          ),
        ),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async getOwnedForm({ formId }, call) {
      const form = await confirmedForm(context, call, formId);
      const version = await forms.version(form.currentVersionId);
      const { definition } = version;
      const preferred = preferredLanguages(call.requestHeader.get('accept-language') ?? '');
      const { fields } = translate(definition, preferred);
      const asked = (await listAskedFields(database, formId)).fields;
      const former = asked.filter(({ id }) => fields.every((field) => field.id !== id));
      const mailsStopped = await isMailStopped(database, { address: form.ownerEmail, formId });
      return {
        form: ownedFormToMessage(form, version, now(), {
          mailsStopped,
          recipients: await listAddedRecipients(database, formId),
          offeredTo: form.pendingOwnerEmail ?? '',
          usesWebhook: definition.delivery.type === 'webhook',
          fieldLabels: Object.fromEntries([...former, ...fields].map(({ id, label }) => [id, label])),
          formerFieldIds: [...new Set(former.map(({ id }) => id))],
          ...(form.status === 'published' && { share: shareOfForm(context, formId, definition) }),
        }),
      };
    },

    closeOwnedForm: ({ formId }, call) => setClosed(formId, true, call),
    reopenOwnedForm: ({ formId }, call) => setClosed(formId, false, call),

    async setOwnedFormMails({ formId, stopped }, call) {
      const { ownerEmail: address, projectId } = await confirmedForm(context, call, formId);
      const action = stopped ? 'form.mails_stopped' : 'form.mails_started';
      await database.transaction(async (tx) => {
        const isChanged = await (stopped ? stopMail : startMail)(tx, { address, formId });
        if (isChanged) await audit.change(tx, call, { projectId, formId, action });
      });
      return {};
    },

    async confirmOwnedForm({ formId }, call) {
      const { id, ownerEmail: address, projectId } = await ownerForm(context, call, formId);
      await database.transaction(async (tx) => {
        const asOwner = { formId: id, address, keepRecipients: true };
        if (!(await takeOwnership(tx, context, asOwner))) throw notFound('form');
        await audit.change(tx, call, { projectId, formId });
      });
      notifyWorkers();
      return {};
    },

    async addFormRecipient({ formId, email: given }, call) {
      const form = await confirmedForm(context, call, formId);
      const email = requireEmail(given);
      const delivery = await deliveryOf(form);
      if (delivery.type !== 'email') {
        throw failed(Reason.CONFLICT, 'The submissions of this form are sent to a webhook, not by email');
      }
      if (delivery.to === undefined && addressKey(email) === addressKey(form.ownerEmail)) {
        throw failed(Reason.CONFLICT, 'The owner gets the submissions of this form already');
      }
      const asked = formEvents.recipientsAdded(form, new Date(now()), [email]);
      await countRequest(context, form, { call, countedAs: asked.id });
      const outcome = await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        const added = await addRecipient(tx, { formId, address: email, max: MAX_RECIPIENTS });
        if (added === 'added') await insertEvents(tx, [asked]);
        if (added === 'full') return added;
        await audit.change(tx, call, { projectId: form.projectId, formId });
        await keepReply(tx, call, {});
        return added;
      });
      if (outcome === 'full')
        throw failed(Reason.CONFLICT, `A form has at most ${MAX_RECIPIENTS} added recipients`);
      notifyWorkers();
      return {};
    },

    async removeFormRecipient({ formId, email: given }, call) {
      const form = await confirmedForm(context, call, formId);
      const email = requireEmail(given);
      const delivery = await deliveryOf(form);
      const named = recipientsIn(delivery);
      const inDefinition = named.some((address) => addressKey(address) === addressKey(email));
      await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        await removeRecipient(tx, { formId, address: email, inDefinition });
        if (!inDefinition)
          await voidMailedLinks(tx, { address: email, formId, purpose: 'confirm-recipient' });
        await audit.change(tx, call, { projectId: form.projectId, formId });
      });
      return {};
    },

    async offerOwnedForm({ formId, email: given }, call) {
      requireFreshSignIn(call, now());
      const form = await confirmedForm(context, call, formId);
      const email = requireEmail(given);
      const facts = { address: email, by: form.ownerEmail };
      const asked = formEvents.ownerChangeRequested(form, new Date(now()), facts);
      await countRequest(context, form, { call, countedAs: asked.id });
      await database.transaction(async (tx) => {
        if (!(await proposeOwner(tx, form.projectId, formId, email, form.ownerEmail))) throw notFound('form');
        await insertEvents(tx, [asked]);
        await audit.change(tx, call, { projectId: form.projectId, formId });
        await keepReply(tx, call, {});
      });
      notifyWorkers();
      return {};
    },

    async withdrawOwnedFormOffer({ formId }, call) {
      const form = await confirmedForm(context, call, formId);
      await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        const address = await withdrawOffer(tx, formId);
        if (address === undefined) return;
        await voidMailedLinks(tx, { address, formId, purpose: 'change-owner' });
        await audit.change(tx, call, { projectId: form.projectId, formId });
      });
      return {};
    },
  };

  async function setClosed(formId: string, isClosed: boolean, call: HandlerContext) {
    const form = await confirmedForm(context, call, formId);
    if (isClosed && form.status === 'archived') {
      throw failed(Reason.CONFLICT, 'The form is archived permanently');
    }
    await database.transaction(async (tx) => {
      await lockForOwner(tx, form);
      const isChanged = await setFormClosed(tx, formId, isClosed);
      if (isChanged) await audit.change(tx, call, { projectId: form.projectId, formId });
    });
    forms.forget(formId);
    return {};
  }

  async function deliveryOf({ currentVersionId }: OwnedForm) {
    return (await forms.version(currentVersionId)).definition.delivery;
  }
}

/** Twice what a definition can name. */
const MAX_RECIPIENTS = 10;
