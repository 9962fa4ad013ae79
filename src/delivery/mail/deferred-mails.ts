import { z } from 'zod';
import { listEventsById } from '../../store/events.ts';
import { findAnyForm, findFormState } from '../../store/forms.ts';
import { findVersion } from '../../store/versions.ts';
import type { DeliveryOptions } from '../options.ts';
import { type MailMessage, mailMessageSchema } from './message.ts';
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
  const { to, eventId, signIn } = deferredMailSchema.parse(stored);
  const { secretKey, settings } = options;
  const context = { secretKey, baseUrl: settings.baseUrl, formId, to };
  if (signIn === true) return signInMail(context, options.now());
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
  return submissionMail(
    context,
    { ...data, definition: answered.definition },
    // Only an owner who has confirmed gets it.
    { delivery: delivery.type === 'email' ? delivery : { type: 'email' }, confirmed: true, isOwner: true },
  );
}

async function writeNotice(
  { database, now }: DeferredMailOptions,
  context: Parameters<typeof noticeMail>[0],
): Promise<MailMessage | null> {
  const [form, state] = await Promise.all([
    findAnyForm(database, context.formId),
    findFormState(database, context.formId),
  ]);
  if (form === null || state === null) return null;
  return noticeMail(context, { formName: form.name, waiting: state.accepted, now: now() });
}

/** Without an event it is a notice, or with `signIn` the mail with a link by which an owner signs in. */
const deferredMailSchema = z.object({
  to: z.string(),
  eventId: z.string().exactOptional(),
  signIn: z.boolean().exactOptional(),
});

export type DeferredMailOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'settings' | 'now'>;
