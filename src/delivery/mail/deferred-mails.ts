import { z } from 'zod';
import { listEventsById } from '../../store/events.ts';
import { findAnyForm, findFormState } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { numbersOfDay } from '../../store/submissions/submission-numbers.ts';
import { chooseMailLanguage } from '../../text/words/mails/index.ts';
import type { DeliveryOptions } from '../options.ts';
import { type MailContext, type MailMessage, mailMessageSchema } from './message.ts';
import { noticeMail, signInMail } from './request-mails.ts';
import { answeredVersion, submissionMail } from './submission-mails.ts';

/**
 * What is stored of a mail that is written when it is sent: a notice, which says how many answers wait then, or
 * one of these answers, which can wait in thousands, so that only the event is named that holds them; or a link to
 * sign in with, which is stored nowhere and works from then on.
 */
export type DeferredMail = z.output<typeof deferredMailSchema>;

/** Reads a mail as it was stored, or writes it now. Null if what it is about was removed. */
export async function readMail(
  options: DeferredMailOptions,
  formId: string,
  stored: unknown,
): Promise<MailMessage | null> {
  const whole = mailMessageSchema.safeParse(stored);
  if (whole.success) return whole.data;
  const { to, eventId, signIn, languages } = deferredMailSchema.parse(stored);
  const { secretKey, settings, now } = options;
  const context = { secretKey, baseUrl: settings.baseUrl, formId, to };
  if (signIn === true) return signInMail({ ...context, language: chooseMailLanguage('', languages) }, now());
  if (eventId === undefined) return writeNotice(options, context);

  const { database } = options;
  const [[event], form] = await Promise.all([
    listEventsById(database, [eventId]),
    findAnyForm(database, formId),
  ]);
  if (event === undefined || form === null) return null;
  const { data, versionId } = answeredVersion(event.body);
  const [answered, current] = await Promise.all([
    findVersion(database, versionId),
    findVersion(database, form.currentVersionId ?? versionId),
  ]);
  if (answered === null || current === null) return null;
  const { delivery } = current.definition;
  const { submissionId: id, createdAt } = data;
  const numbers = await numbersOfDay(database, [{ formId, id, createdAt: new Date(createdAt) }]);
  const language = chooseMailLanguage(answered.definition.settings.locale);
  return submissionMail(
    { ...context, language, senderName: answered.definition.name },
    { ...data, definition: answered.definition },
    // Only an owner who has confirmed gets it.
    {
      delivery: delivery.type === 'email' ? delivery : { type: 'email' },
      reader: 'owner',
      ofDay: numbers.get(id),
      now: now(),
    },
  );
}

async function writeNotice(
  { database, now }: DeferredMailOptions,
  context: Omit<MailContext, 'language'>,
): Promise<MailMessage | null> {
  const [form, state] = await Promise.all([
    findAnyForm(database, context.formId),
    findFormState(database, context.formId),
  ]);
  if (form === null || state === null) return null;
  const version = await findVersion(database, form.currentVersionId ?? '');
  const language = chooseMailLanguage(version?.definition.settings.locale);
  return noticeMail({ ...context, language }, { formName: form.name, waiting: state.accepted, now: now() });
}

/** Without an event it is a notice, or with `signIn` the mail with a link by which an owner signs in. */
export const deferredMailSchema = z.object({
  to: z.string(),
  eventId: z.string().exactOptional(),
  signIn: z.boolean().exactOptional(),
  /** The languages that whoever asked to sign in prefers, as in `Accept-Language`. */
  languages: z.string().exactOptional(),
  /** Of mails to sign in with: a device that has signed in asked, or somebody in a network of this pseudonym. */
  isKnown: z.boolean().exactOptional(),
  askedFrom: z.string().exactOptional(),
});

export type DeferredMailOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'settings' | 'now'>;
