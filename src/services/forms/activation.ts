import type { ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { ActivateFormRequest, FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { isKeyless } from '../../domain/ids.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import type { Database, Transaction } from '../../store/database/database.ts';
import { insertEvents, type NewEvent } from '../../store/events.ts';
import { type Form, findAnyForm } from '../../store/forms/forms.ts';
import { type ActivationOutcome, activateForm } from '../../store/forms/versions.ts';
import type { ServiceContext } from '../context.ts';
import { requireEmail, requireFound } from '../request-values.ts';
import { syncDefinitionWebhook } from '../webhooks/definition-webhook.ts';
import { confirmationInWords, foreseeConfirmation } from './confirmation-mail.ts';
import { isHidden } from './form-access.ts';
import { sharedFormToMessage } from './form-proto.ts';
import { formEvents, newVersion } from './form-rows.ts';

/** The RPCs whose credential is the activation token. */
export function activationMethods(context: ServiceContext) {
  const { database, now, audit } = context;
  return {
    async getActivation({ formId, activationToken }) {
      const form = await draftOf(database, formId, activationToken);
      return { formName: form.name };
    },

    async activateForm(request, call) {
      const { formId, email } = request;
      const draft = await draftOf(database, formId, request.activationToken);
      requireEmail(email);
      const activated = formEvents.activated(draft, new Date(now()), email);
      const sent = { address: email, countedAs: activated.id };
      const confirmation = await foreseeConfirmation(context, draft, sent);
      const webhookSecret = await database.transaction(async (tx) => {
        const secret = await publishDraft(tx, context, request, activated);
        await audit.change(tx, call, { projectId: draft.projectId, formId });
        return secret;
      });
      context.forms.forget(formId);
      context.notifyWorkers();
      const form = await findAnyForm(database, formId);
      if (form === null) throw notFound('form');
      const { draftDefinition } = draft;
      if (draftDefinition === null) throw new TypeError(`The draft ${formId} has no definition`);
      const needsOwner = isKeyless(draft) && context.settings.ownerConfirmation;
      const answersWait = needsOwner && draftDefinition.delivery.type === 'email';
      return {
        form: sharedFormToMessage(context, form, draftDefinition),
        webhookSecret,
        confirmation,
        answersWait,
        message: confirmationInWords(confirmation, email, answersWait),
      };
    },
  } satisfies Partial<ServiceImpl<typeof FormsService>>;
}

/** The draft that the token can publish now. A wrong token reveals nothing about the form's state. */
async function draftOf(database: Database, formId: string, token: string): Promise<Form> {
  const form = await requireFound('form', formId, () => findAnyForm(database, formId));
  if (isHidden(form)) throw notFound('form');
  if (token === '') {
    const violation = { path: 'activation_token', code: 'invalid_type', message: 'Required' } as const;
    throw failed(Reason.BAD_REQUEST, 'The activation token is missing', { violations: [violation] });
  }
  if (form.activationHash !== hashSecret(token)) throw refusal('wrong_token');
  if (form.activatedAt !== null || form.status !== 'draft') throw refusal('used');
  if (form.activationExpiresAt <= (await database.now())) throw refusal('expired');
  return form;
}

/**
 * Publishes the draft as its first version, and checks the token again: another call may have
 * used it meanwhile. Returns the webhook secret if one was made, else ''.
 */
async function publishDraft(
  tx: Transaction,
  { secrets, settings: { maxWebhooks } }: ServiceContext,
  { formId, activationToken, email }: ActivateFormRequest,
  activated: NewEvent,
): Promise<string> {
  const form = await findAnyForm(tx, formId);
  const definition = form?.draftDefinition;
  if (!form || !definition) throw refusal('used');
  const { createdAt: at } = activated;
  const version = newVersion(definition, at);
  const outcome = await activateForm(tx, {
    formId,
    tokenHash: hashSecret(activationToken),
    ownerEmail: email,
    version,
  });
  if (outcome !== 'activated') throw refusal(outcome);

  const { delivery } = definition;
  const further = delivery.type === 'email' ? (delivery.to ?? []) : [];
  await insertEvents(tx, [
    activated,
    ...(further.length > 0 ? [formEvents.recipientsAdded(form, at, further)] : []),
  ]);
  const secret = form.draftSecret === null ? undefined : secrets.open(form.draftSecret);
  return syncDefinitionWebhook(tx, { form, delivery, secret, secrets, maxWebhooks, at });
}

function refusal(outcome: Exclude<ActivationOutcome, 'activated'>) {
  switch (outcome) {
    case 'not_found':
      return notFound('form');
    case 'wrong_token':
      return failed(Reason.INVALID_TOKEN, 'The activation token is not right');
    case 'expired':
      return failed(Reason.INVALID_TOKEN, 'The activation token has expired');
    case 'used':
      return failed(Reason.TOKEN_USED, 'The activation token has been used: the form is published');
    default:
      return outcome satisfies never;
  }
}
