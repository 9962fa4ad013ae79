import { z } from 'zod';
import { addressKey } from '../../domain/addresses/email-address.ts';
import type { EmailDelivery, FormDefinition } from '../../domain/definition/definition.ts';
import { publicPageUrl } from '../../domain/definition/share.ts';
import { isKeyless } from '../../domain/ids.ts';
import { mailLinkUrl } from '../../domain/links.ts';
import { respondentCode } from '../../domain/sessions/respondent.ts';
import type { Claim, QueuedMailContent } from '../../store/deliveries/claimed.ts';
import { findNotified } from '../../store/deliveries/find-notified.ts';
import { listEventsById } from '../../store/events.ts';
import { type Form, findAnyForm, findFormState } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { listConfirmedRecipients } from '../../store/mail/mail-recipients.ts';
import { newCorrection } from '../../store/mail/mailed-links.ts';
import { findProject } from '../../store/projects/projects.ts';
import { chooseLanguage } from '../../text/words.ts';
import type { DeliveryOptions } from '../options.ts';
import { type MailContext, type MailMessage, mailMessageSchema } from './message.ts';
import { isOwner, isOwnerConfirmed, readerOf } from './recipients.ts';
import {
  codeMail,
  confirmationButton,
  isAboutWebhook,
  noticeMail,
  ownerChangedMail,
  questionMail,
  type RequestedMail,
  type RequestKind,
  requestMail,
  signInMail,
  webhookMail,
} from './request-mails.ts';
import { answeredVersion, autoresponseMail, submissionMail } from './submission-mails.ts';

/**
 * Writes an email as it is sent: by its kind, and what the form and its event say by now. Null if what it is about was
 * removed, or is not for this address any more. Emails that earlier versions have stored whole are as they were.
 *
 * @throws MakingFailed if there is something in the event that no email can be made of.
 */
export async function composeMail(
  options: ComposeOptions,
  { kind, projectId, formId }: Pick<Claim, 'kind' | 'projectId' | 'formId'>,
  { mail, eventId }: QueuedMailContent,
): Promise<MailMessage | null> {
  const whole = mailMessageSchema.safeParse(mail);
  if (whole.success) return whole.data;
  const queued = queuedMailSchema.parse(mail);
  const { to, languages, webhook, codeId, browserHash = null, by, reminder = 0 } = queued;
  const { database, secretKey, settings } = options;
  const context = { secretKey, baseUrl: settings.baseUrl, formId, to };
  if (kind === 'sign_in') {
    return signInMail(options, { ...context, language: chooseLanguage('', languages) }, browserHash);
  }

  if (kind === 'respondent_code') {
    const asked = { ...context, language: chooseLanguage('', languages) };
    return codeId === undefined ? null : codeMail(asked, respondentCode(secretKey, codeId));
  }

  if (formId === '' && isAboutWebhook(kind)) {
    // To the operator: its stop link stops those of the project.
    const operator = { ...context, formId: projectId, language: chooseLanguage() };
    return webhook === undefined ? null : webhookMail(operator, kind, { ...webhook, reader: 'operator' });
  }

  const form = await findAnyForm(database, formId);
  if (form === null) return null;
  const definition = (await findVersion(database, form.currentVersionId ?? ''))?.definition;
  const { locale, theme } = definition?.settings ?? {};
  const inLanguage = { ...context, language: chooseLanguage(locale), accentColor: theme?.accentColor };
  switch (kind) {
    case 'notice': {
      const waiting = (await findFormState(database, formId))?.accepted ?? 0;
      return noticeMail(options, inLanguage, { formName: form.name, waiting });
    }
    case 'question':
      return writeQuestion(options, context, { eventId, reminder });
    case 'webhook_off':
    case 'webhook_failing':
    case 'webhook_working': {
      const named = { ...inLanguage, senderName: form.name };
      return webhook === undefined ? null : webhookMail(named, kind, { ...webhook, reader: 'owner' });
    }
    case 'owner_changed':
      return ownerChangedMail(inLanguage, form.name, form.ownerEmail);
    case 'owner_change':
      // The request was withdrawn, or another address was asked since.
      if (addressKey(form.pendingOwnerEmail ?? '') !== addressKey(to)) return null;
      return writeRequest(options, kind, inLanguage, { form, definition, browserHash, by });
    case 'confirmation':
    case 'recipient_confirmation':
      return writeRequest(options, kind, inLanguage, { form, definition, browserHash, by });
    default:
      return writeAboutSubmission(options, kind, context, { form, definition, eventId });
  }
}

/**
 * Runs code that makes emails of what was read: what it throws comes again each time, and is thrown as
 * `MakingFailed`.
 */
export function making<Made>(make: () => Made): Made {
  try {
    return make();
  } catch (error) {
    throw new MakingFailed('Emails could not be made', { cause: error });
  }
}

/** Of the event, not of what is needed to read and store: trying again can't help. */
export class MakingFailed extends Error {
  override name = 'MakingFailed';
}

function writeRequest(
  options: ComposeOptions,
  kind: RequestKind,
  context: MailContext,
  {
    form,
    definition,
    ...asked
  }: Pick<AboutForm, 'form' | 'definition'> & Pick<RequestedMail, 'browserHash' | 'by'>,
): Promise<MailMessage> {
  const { settings } = options;
  const keyless = isKeyless(form);
  // A stranger's form could say anything on its page, to an address that never asked for it.
  const namesPage = kind === 'confirmation' && definition !== undefined && !keyless;
  // A sender's name that a stranger chose would go to addresses that never asked for it, too.
  const hasOwnName = !keyless || isOwnerConfirmed(form, settings);
  return requestMail(options, hasOwnName ? { ...context, senderName: form.name } : context, {
    kind,
    formName: form.name,
    pageUrl: namesPage ? publicPageUrl(form.id, definition, settings.hostedUrl) : undefined,
    responsesTo: responsesTo(form, definition?.delivery),
    ...asked,
  });
}

function responsesTo(form: Form, delivery: FormDefinition['delivery'] = { type: 'email' }) {
  if (delivery.type === 'webhook') return 'webhook';
  return delivery.to === undefined || delivery.to.some((to) => isOwner(form, to)) ? 'owner' : 'listed';
}

/** The questions are those of the version that the session began with. */
async function writeQuestion(
  { database, settings }: ComposeOptions,
  context: Omit<MailContext, 'language'>,
  { eventId, reminder }: { eventId: string | null; reminder: number },
): Promise<MailMessage | null> {
  const notified = await findNotified(database, eventId ?? '');
  if ('refusal' in notified) return null;
  const { session } = notified;
  const version = await findVersion(database, session.versionId);
  const project = await findProject(database, session.projectId);
  if (version === null || project === null) return null;
  const language = chooseLanguage(version.definition.settings.locale);
  return questionMail(
    { ...context, language },
    {
      projectId: project.id,
      project: project.name,
      definition: version.definition,
      session,
      reminder,
      url: `${settings.hostedUrl}/f/${session.id}`,
    },
  );
}

/**
 * Labels are those of the version that was answered; where answers go, and what is replied, is as the form has it
 * now.
 */
async function writeAboutSubmission(
  options: ComposeOptions,
  kind: string,
  context: Omit<MailContext, 'language'>,
  { form, definition: current, eventId }: AboutForm,
): Promise<MailMessage | null> {
  const { database, settings, now } = options;
  const [event] = eventId === null ? [] : await listEventsById(database, [eventId]);
  if (event === undefined || current === undefined) return null;
  const { data, versionId } = making(() => answeredVersion(event.body));
  const answered = await findVersion(database, versionId);
  if (answered === null) return null;
  const { definition } = answered;
  const submission = { ...data, definition };
  if (kind === 'autoresponse') {
    const isProven = addressKey(data.respondent?.email ?? '') === addressKey(context.to);
    const isOffered = isProven && current.settings.allowCorrection === true;
    const token = isOffered ? await newCorrection(options, form.id, data.submissionId) : '';
    const url = isOffered ? mailLinkUrl(settings.hostedUrl, token) : undefined;
    return making(() => autoresponseMail(context, submission, current, url));
  }

  const delivery: EmailDelivery = current.delivery.type === 'email' ? current.delivery : { type: 'email' };
  const confirmed = await listConfirmedRecipients(database, [form.id]);
  const read =
    kind === 'demo'
      ? { reader: 'operator' as const, to: context.to }
      : readerOf(settings, form, delivery, confirmed, context.to);
  if (read === undefined) return null;
  const { reader, to } = read;
  const { locale, theme } = definition.settings;
  const named = {
    ...context,
    // A delivery that is sent again has lost how the address is written.
    to,
    language: chooseLanguage(locale),
    senderName: definition.name,
    accentColor: theme.accentColor,
  };
  const { ownerEpoch } = form;
  const confirmation = reader === 'unconfirmed' ? await confirmationButton(options, named) : undefined;
  const about = { delivery, reader, ownerEpoch, now: now(), confirmation };
  return making(() => submissionMail(named, submission, about));
}

/** What is queued of an email beside its kind, its form and its event. */
export const queuedMailSchema = z.object({
  to: z.string(),
  /** Null, so that versions that store emails whole leave this one to a later version. The event is its delivery's. */
  eventId: z.string().nullable().exactOptional(),
  /** What it was counted as, if it was counted when it was asked for. */
  countedAs: z.string().exactOptional(),
  /** Of a question: 0 for the first email, and then the number of the reminder. */
  reminder: z.number().exactOptional(),
  /** That was turned off, fails, or works again. */
  webhook: z.object({ id: z.string(), host: z.string() }).exactOptional(),
  /** The languages preferred by the person who asked to sign in, as in `Accept-Language`. */
  languages: z.string().exactOptional(),
  /** Of emails to sign in with: a device that has signed in asked, or somebody in a network of this pseudonym. */
  isKnown: z.boolean().exactOptional(),
  askedFrom: z.string().exactOptional(),
  /** Of the code that a respondent asked for. */
  codeId: z.string().exactOptional(),
  /** SHA-256 of what only the browser has that asked to sign in, hex. */
  browserHash: z.string().exactOptional(),
  /** The owner who asks to take a form over. */
  by: z.string().exactOptional(),
});

export type QueuedMail = z.output<typeof queuedMailSchema>;

type AboutForm = { form: Form; definition: FormDefinition | undefined; eventId: string | null };

export type ComposeOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'settings' | 'now'>;
