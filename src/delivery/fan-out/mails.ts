import { z } from 'zod';
import type { Answers } from '../../domain/answers/answers.ts';
import type { Delivery, EmailDelivery } from '../../domain/definition/definition.ts';
import { addressKey } from '../../domain/email-address.ts';
import { addressesOf } from '../../domain/events/bodies.ts';
import { effectsOf } from '../../domain/events/index.ts';
import { demoFormId, newId } from '../../domain/ids.ts';
import type { NewDelivery } from '../../store/delivery-inserts.ts';
import type { WaitingEvent } from '../../store/events.ts';
import type { MailKind, MailMessage } from '../mail/message.ts';
import { type RequestKind, requestMail } from '../mail/request-mails.ts';
import { type AnsweredForm, autoresponseMail, submissionMail } from '../mail/submission-mails.ts';
import type { FanOutOptions, Surroundings } from './fan-out-context.ts';

/**
 * Whether mails may come of an event. Most have none: where answers go to webhooks, nothing need be read
 * for them.
 */
export function mayBecomeMail({ type, formId }: WaitingEvent, around: KnownForms): boolean {
  const { mails } = effectsOf(type);
  return mails === 'submission' ? deliveryOf(formId, around)?.type === 'email' : mails !== 'none';
}

/** The mails that an event leads to. */
export function mailsOf(options: FanOutOptions, event: WaitingEvent, around: Surroundings): NewDelivery[] {
  const { mails } = effectsOf(event.type);
  switch (mails) {
    case 'submission':
      return submissionMails(options, event, around);
    case 'confirmation': {
      const owner = around.forms.get(event.formId)?.ownerEmail;
      return owner === undefined || owner === null ? [] : requests(options, event, around, mails, [owner]);
    }
    case 'owner_change':
      return requests(options, event, around, mails, addressesOf(event.body));
    case 'recipient_confirmation': {
      const confirmed = new Set(confirmedOf(event.formId, around).map(addressKey));
      const open = addressesOf(event.body).filter((address) => !confirmed.has(addressKey(address)));
      return requests(options, event, around, mails, open);
    }
    case 'none':
      return [];
    default:
      return mails satisfies never;
  }
}

function submissionMails(options: FanOutOptions, event: WaitingEvent, around: Surroundings): NewDelivery[] {
  const { secretKey, settings } = options;
  const delivery = deliveryOf(event.formId, around);
  if (delivery?.type !== 'email') return [];
  const answered = answeredForm(event, around);
  if (answered === undefined) return [];

  const context = { secretKey, baseUrl: settings.baseUrl, formId: event.formId };
  const kind = event.formId === demoFormId ? 'demo' : 'owner';
  const toOwners = readersOf(options, event, around, delivery).map((to) =>
    mailDelivery(options, event, kind, submissionMail({ ...context, to }, answered, delivery)),
  );
  const reply = delivery.autoresponse && autoresponseMail(context, answered, delivery.autoresponse);
  if (reply === undefined || reply === null) return toOwners;
  return [...toOwners, { ...mailDelivery(options, event, 'autoresponse', reply), oncePerDay: true }];
}

/** Where the answers to a form go now, whichever version was answered. */
function deliveryOf(formId: string, { forms, versions }: KnownForms): Delivery | undefined {
  return versions.get(forms.get(formId)?.currentVersionId ?? '')?.definition.delivery;
}

/** The activated address, or instead those in `to` that have confirmed; the owner's has by another link. */
function readersOf(
  { settings }: FanOutOptions,
  { formId }: WaitingEvent,
  around: Surroundings,
  delivery: EmailDelivery,
): string[] {
  if (formId === demoFormId) return [settings.operatorEmail ?? settings.mailFrom];
  const owner = around.forms.get(formId)?.ownerEmail ?? undefined;
  if (delivery.to === undefined) return owner === undefined ? [] : [owner];
  const known = new Set(
    [...confirmedOf(formId, around), ...(owner === undefined ? [] : [owner])].map(addressKey),
  );
  return delivery.to.filter((address) => known.has(addressKey(address)));
}

function confirmedOf(formId: string, { recipients }: Surroundings): string[] {
  return recipients.filter((recipient) => recipient.formId === formId).map(({ address }) => address);
}

function answeredForm(event: WaitingEvent, { versions }: Surroundings): AnsweredForm | undefined {
  const { data } = submissionEvent.parse(JSON.parse(event.body));
  const definition = versions.get(data.formVersionId)?.definition;
  return definition && { definition, ...data };
}

function requests(
  options: FanOutOptions,
  event: WaitingEvent,
  { forms }: Surroundings,
  kind: RequestKind,
  addresses: string[],
): NewDelivery[] {
  const { secretKey, settings, now } = options;
  const formName = forms.get(event.formId)?.name ?? '';
  return addresses.map((to) => {
    const context = { secretKey, baseUrl: settings.baseUrl, formId: event.formId, to };
    return mailDelivery(options, event, kind, requestMail(context, { kind, formName, now: now() }));
  });
}

function mailDelivery(
  options: FanOutOptions,
  event: WaitingEvent,
  kind: MailKind,
  mail: MailMessage,
): NewDelivery {
  return {
    id: newId('dlv', options.now()),
    eventId: event.id,
    projectId: event.projectId,
    formId: event.formId,
    submissionId: event.submissionId,
    kind,
    receiver: addressKey(mail.to),
    mail,
    delaySeconds: options.settings.schedule[0] ?? 0,
  };
}

const submissionEvent = z.object({
  data: z.object({
    submissionId: z.string(),
    formVersionId: z.string(),
    createdAt: z.string(),
    answers: z.custom<Answers>((value) => typeof value === 'object' && value !== null),
  }),
});

type KnownForms = Pick<Surroundings, 'forms' | 'versions'>;
