import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import {
  type ActivateFormRequest,
  ConfirmationState,
  type FormsService,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { recipientsIn } from '../../domain/definition/delivery.ts';
import { requestAllowances, strangersAllowance } from '../../domain/delivery/mails.ts';
import { failed, limited, notFound } from '../../domain/errors/failure.ts';
import { isKeyless } from '../../domain/ids.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import { pseudonymOf } from '../../domain/secrets/secret-key.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import type { Database, Transaction } from '../../store/database/database.ts';
import { insertEvents, type NewEvent } from '../../store/events.ts';
import { type Form, findAnyForm } from '../../store/forms/forms.ts';
import { type ActivationOutcome, activateForm } from '../../store/forms/versions.ts';
import { takeMailAllowances } from '../../store/mail/mail-allowances.ts';
import { isMailStopped } from '../../store/mail/mail-recipients.ts';
import type { ServiceContext } from '../context.ts';
import { keepReply } from '../idempotency.ts';
import { browserHashOf, requireEmail, requireFound } from '../request-values.ts';
import { syncDefinitionWebhook } from '../webhooks/definition-webhook.ts';
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
      const { formId } = request;
      const draft = await draftOf(database, formId, request.activationToken);
      const email = requireEmail(request.email);
      const browserHash = browserHashOf(request.browser);
      const asked = { address: email, ...(browserHash !== null && { browserHash }) };
      const activated = formEvents.activated(draft, new Date(now()), asked);
      const sent = { address: email, countedAs: activated.id };
      const confirmation = await foreseeConfirmation(context, draft, sent);
      const { draftDefinition } = draft;
      if (draftDefinition === null) throw new TypeError(`The draft ${formId} has no definition`);
      const needsOwner = isKeyless(draft) && context.settings.ownerConfirmation;
      const answersWait = needsOwner && draftDefinition.delivery.type === 'email';
      const reply = await database.transaction(async (tx) => {
        const webhookSecret = await publishDraft(tx, context, { ...request, email }, activated);
        await audit.change(tx, call, { projectId: draft.projectId, formId });
        const form = await findAnyForm(tx, formId);
        if (form === null) throw notFound('form');
        return keepReply(tx, call, {
          form: sharedFormToMessage(context, form, draftDefinition),
          webhookSecret,
          confirmation,
          answersWait,
          message: confirmationInWords(confirmation, email, answersWait),
        });
      });
      context.forms.forget(formId);
      context.notifyWorkers();
      return reply;
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
  context: ServiceContext,
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
  const further = recipientsIn(delivery);
  await insertEvents(tx, [
    activated,
    ...(further.length > 0 ? [formEvents.recipientsAdded(form, at, further)] : []),
  ]);
  const secret = form.draftSecret === null ? undefined : context.secrets.open(form.draftSecret);
  return syncDefinitionWebhook(tx, context, { form, delivery, secret, at });
}

function refusal(outcome: Exclude<ActivationOutcome, 'activated'>) {
  switch (outcome) {
    case 'not_found':
      return notFound('form');
    case 'wrong_token':
      return failed(Reason.INVALID_TOKEN, 'The activation token is not valid');
    case 'expired':
      return failed(Reason.INVALID_TOKEN, 'The activation token has expired');
    case 'used':
      return failed(Reason.TOKEN_USED, 'The activation token has been used: the form is published');
    default:
      return outcome satisfies never;
  }
}

/**
 * What will become of the email that asks a form's owner to confirm. It is counted against what the address may be
 * asked today, as `countedAs`, so that what is said of it stays true. Anybody makes forms without a key: of these
 * nothing is said that depends on the address, after the same work.
 */
async function foreseeConfirmation(
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
  const message = 'Too many people were asked by email from this address today';
  throw limited('mails_to_strangers', message, usedUp.waitMs / 1000);
}

/** What the emails are counted by that a client without a key causes. */
export function creatorOf({ secretKey }: Pick<ServiceContext, 'secretKey'>, call: HandlerContext): string {
  return pseudonymOf(secretKey, 'created-from', networkOf(clientAddressOf(call)));
}

/** What becomes of the confirmation, in words. `answersWait`: answers are emailed once the address has confirmed. */
function confirmationInWords(state: ConfirmationState, email: string, answersWait: boolean): string {
  return ['The form is published.', sentences[state](email), ...(answersWait ? [WAITS] : [])].join(' ');
}

const sentences: Record<ConfirmationState, (email: string) => string> = {
  [ConfirmationState.UNSPECIFIED]: () => '',
  [ConfirmationState.ON_ITS_WAY]: (email) => `A confirmation is on its way to ${email}.`,
  [ConfirmationState.LATER]: (email) =>
    `The confirmation to ${email} is sent on another day. That address has had too many requests today.`,
  [ConfirmationState.STOPPED]: (email) =>
    `${email} gets no confirmation, because that address has stopped emails from this service. The link at the end of any earlier email starts them again.`,
  [ConfirmationState.WRITTEN]: (email) =>
    `The confirmation to ${email} is saved to a file, because SMTP_URL is not set.`,
};

/** Said of forms made without a key that are delivered by email. */
const WAITS =
  'If no email arrives, that address has stopped our emails or was asked too often today. Responses are held until it confirms; it gets at most 3 notices a day about them.';
