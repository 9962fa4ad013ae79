import { addressKey } from '../../domain/addresses/email-address.ts';
import { mailboxOf } from '../../domain/addresses/mailbox.ts';
import type { EmailDelivery } from '../../domain/definition/definition.ts';
import { publicPageUrl } from '../../domain/definition/share.ts';
import type { MailKind } from '../../domain/delivery/mail-kind.ts';
import { addressesOf } from '../../domain/events/bodies.ts';
import { effectsOf } from '../../domain/events/index.ts';
import { demoFormId, newId } from '../../domain/ids.ts';
import type { NewMail } from '../../store/deliveries/delivery-inserts.ts';
import type { StoredEvent } from '../../store/events.ts';
import type { Form } from '../../store/forms/forms.ts';
import { chooseMailLanguage } from '../../text/words/mails/index.ts';
import type { DeferredMail } from '../mail/deferred-mails.ts';
import type { MailMessage } from '../mail/message.ts';
import { type RequestKind, requestMail } from '../mail/request-mails.ts';
import {
  type AnsweredForm,
  answeredVersion,
  autoresponseMail,
  type Reader,
  submissionMail,
} from '../mail/submission-mails.ts';
import { currentDefinition, type FanOutContext, type FanOutOptions } from './fan-out-context.ts';

/** The mails that an event causes. */
export function mailsFor(options: FanOutOptions, event: StoredEvent, context: FanOutContext): NewMail[] {
  const { mails } = effectsOf(event.type);
  switch (mails) {
    case 'submission':
      return submissionMails(options, event, context);
    case 'confirmation': {
      const owner = context.forms.get(event.formId)?.ownerEmail;
      return owner === undefined || owner === null
        ? []
        : requestMails(options, event, context, mails, [owner]);
    }
    case 'owner_change':
      return requestMails(options, event, context, mails, addressesOf(event.body));
    case 'recipient_confirmation': {
      const confirmed = new Set(confirmedOf(event.formId, context).map(addressKey));
      const open = addressesOf(event.body).filter((address) => !confirmed.has(addressKey(address)));
      return requestMails(options, event, context, mails, open);
    }
    case 'none':
      return [];
    default:
      return mails satisfies never;
  }
}

function submissionMails(options: FanOutOptions, event: StoredEvent, context: FanOutContext): NewMail[] {
  const { secretKey, settings, now } = options;
  const definition = currentDefinition(event.formId, context);
  if (definition?.delivery.type !== 'email') return [];
  const { delivery } = definition;
  const form = context.forms.get(event.formId);
  if (form?.createdBy === 'public' && form.ownerConfirmedAt === null)
    return waitingMails(options, event, context);
  const answered = answeredForm(event, context);
  if (answered === undefined) return [];

  const mailContext = {
    secretKey,
    baseUrl: settings.baseUrl,
    formId: event.formId,
    language: chooseMailLanguage(answered.definition.settings.locale),
    senderName: answered.definition.name,
  };
  const kind = event.formId === demoFormId ? 'demo' : 'owner';
  const ofDay = context.numbers.get(answered.submissionId);
  const toOwners = recipientsOf(options, event, context, delivery).map((to) => {
    const reader = readerOf(event.formId, context, delivery, to);
    const about = { delivery, reader, ofDay, now: now() };
    return mailDelivery(
      options,
      event,
      context,
      kind,
      submissionMail({ ...mailContext, to }, answered, about),
    );
  });
  const reply = autoresponseMail(mailContext, answered, definition);
  return reply ? [...toOwners, oncePerDay(options, event, context, 'autoresponse', reply)] : toOwners;
}

/** Until the owner of a form made without a key confirms, answers wait, and a notice says so. */
function waitingMails(options: FanOutOptions, event: StoredEvent, context: FanOutContext): NewMail[] {
  const to = context.forms.get(event.formId)?.ownerEmail ?? null;
  if (to === null) return [];
  return [
    mailDelivery(options, event, context, 'owner', { to, eventId: event.id }),
    oncePerDay(options, event, context, 'notice', { to }),
  ];
}

function readerOf(formId: string, context: FanOutContext, delivery: EmailDelivery, to: string): Reader {
  if (formId === demoFormId) return 'operator';
  const form = context.forms.get(formId);
  if (isOwner(form, to)) {
    const isConfirmed =
      form?.ownerConfirmedAt !== null ||
      confirmedOf(formId, context).map(addressKey).includes(addressKey(to));
    return isConfirmed ? 'owner' : 'unconfirmed';
  }
  return delivery.to?.some((named) => addressKey(named) === addressKey(to)) === true ? 'named' : 'added';
}

function isOwner(form: Form | undefined, to: string): boolean {
  const owner = form?.ownerEmail ?? null;
  return owner !== null && addressKey(owner) === addressKey(to);
}

/** Those that the definition has, and those beside them that the owner has added and that have confirmed. */
function recipientsOf(
  { settings }: FanOutOptions,
  { formId }: StoredEvent,
  context: FanOutContext,
  delivery: EmailDelivery,
): string[] {
  if (formId === demoFormId) return [settings.operatorEmail ?? settings.mailFrom];
  const named = namedRecipients(formId, context, delivery);
  const known = new Set(named.map(addressKey));
  const added = context.recipients.filter((each) => each.formId === formId && !known.has(each.address));
  return [...named, ...added.flatMap(({ addedAs }) => addedAs ?? [])];
}

/** The owner's address, or instead those in `to` that have confirmed; the owner confirms by another link. */
function namedRecipients(formId: string, context: FanOutContext, delivery: EmailDelivery): string[] {
  const owner = context.forms.get(formId)?.ownerEmail ?? undefined;
  if (delivery.to === undefined) return owner === undefined ? [] : [owner];
  const known = new Set(
    [...confirmedOf(formId, context), ...(owner === undefined ? [] : [owner])].map(addressKey),
  );
  return delivery.to.filter((address) => known.has(addressKey(address)));
}

function confirmedOf(formId: string, { recipients }: FanOutContext): string[] {
  return recipients.filter((recipient) => recipient.formId === formId).map(({ address }) => address);
}

function answeredForm(event: StoredEvent, { versions }: FanOutContext): AnsweredForm | undefined {
  const { data, versionId } = answeredVersion(event.body);
  const definition = versions.get(versionId)?.definition;
  return definition && { definition, ...data };
}

function requestMails(
  options: FanOutOptions,
  event: StoredEvent,
  context: FanOutContext,
  kind: RequestKind,
  addresses: string[],
): NewMail[] {
  const { secretKey, settings, now } = options;
  const form = context.forms.get(event.formId);
  const formName = form?.name ?? '';
  const definition = context.versions.get(form?.currentVersionId ?? '')?.definition;
  // A stranger's form could say anything on its page, to an address that never asked for it.
  const isKeyless = form?.createdBy === 'public';
  const namesPage = kind === 'confirmation' && definition !== undefined && !isKeyless;
  const pageUrl = namesPage ? publicPageUrl(event.formId, definition, settings.hostedUrl) : undefined;
  // A sender's name that a stranger chose would go to addresses that never asked for it, too.
  const hasOwnName = !isKeyless || form.ownerConfirmedAt !== null;
  const usesWebhook = definition?.delivery.type === 'webhook';
  return addresses.map((to) => {
    const mailContext = {
      secretKey,
      baseUrl: settings.baseUrl,
      formId: event.formId,
      to,
      language: chooseMailLanguage(definition?.settings.locale),
      ...(hasOwnName && { senderName: formName }),
    };
    const request = { kind, formName, pageUrl, usesWebhook, now: now() };
    const mail = { ...requestMail(mailContext, request), countedAs: event.id };
    return mailDelivery(options, event, context, kind, mail);
  });
}

/** One of a kind and form goes to a mailbox in a day, by whichever of its addresses. */
function oncePerDay(...given: Parameters<typeof mailDelivery>): NewMail {
  const [, , , , { to }] = given;
  return { ...mailDelivery(...given), oncePerDay: mailboxOf(to) };
}

function mailDelivery(
  options: FanOutOptions,
  event: StoredEvent,
  { forms }: FanOutContext,
  kind: MailKind,
  mail: MailMessage | DeferredMail,
): NewMail {
  return {
    id: newId('dlv', options.now()),
    eventId: event.id,
    projectId: event.projectId,
    formId: event.formId,
    keyless: forms.get(event.formId)?.createdBy === 'public',
    kind,
    receiver: addressKey(mail.to),
    mail,
    delaySeconds: options.settings.schedule[0] ?? 0,
  };
}
