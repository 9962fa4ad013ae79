import { type NewEntry, uncalledEntry } from '../../domain/audit/entry.ts';
import { newId } from '../../domain/ids.ts';
import type { Database } from '../../store/database/database.ts';
import { queueMails } from '../../store/deliveries/delivery-inserts.ts';
import { findAnyForm } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { listOwners } from '../../store/owners/owners.ts';
import { type TurnedOffWebhook, turnOffWebhook } from '../../store/webhooks/webhooks.ts';
import { fill } from '../../text/words/language.ts';
import { chooseMailLanguage } from '../../text/words/mails/index.ts';
import { type MailContext, type MailMessage, writeMail } from '../mail/message.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Turns a webhook off and stores the reason. If it has failed for days, the owners of the forms it serves
 * are mailed. Never throws: a failure is logged.
 */
export async function turnOff(options: TurnOffOptions, id: string, cause: TurnOffCause): Promise<void> {
  const { database, auditWriter, now, log, metrics } = options;
  const reason = reasons[cause];
  try {
    const webhook = await database.transaction(async (tx) => {
      const off = await turnOffWebhook(tx, { id, reason });
      if (off !== null) await auditWriter.store(tx, entryOf(off, cause, now()));
      return off;
    });
    if (webhook === null) return;
    metrics?.onTurnedOff(cause);
    log.warn({ webhook: id, reason }, 'Turned a webhook off.');
    if (cause === 'too_long') await mailOwners(options, webhook);
  } catch (error) {
    log.error({ err: error, webhook: id }, 'Could not turn a webhook off; its deliveries go on.');
  }
}

const reasons: Record<TurnOffCause, string> = {
  gone: 'Its receiver answered 410 Gone.',
  too_long: 'It has failed for five days without a success.',
  never_worked: 'Its first 10 attempts failed.',
};

function entryOf({ id, projectId, formId }: TurnedOffWebhook, detail: TurnOffCause, at: number): NewEntry {
  const about = { resource: id, ...(formId !== null && { formId }), detail };
  return uncalledEntry({ projectId, at, action: 'webhook.turned_off', ...about });
}

/** A project can have thousands of forms, but few people own them. */
const MAX_OWNERS = 20;

async function mailOwners(options: TurnOffOptions, webhook: TurnedOffWebhook): Promise<void> {
  const { database, secretKey, settings, now } = options;
  const { projectId } = webhook;
  const owners = await listOwners(database, { projectId, formId: webhook.formId, limit: MAX_OWNERS });
  const mails = owners.map(async ({ formId, formName, address: to }) => {
    const language = chooseMailLanguage(await localeOf(database, formId));
    const context = {
      secretKey,
      baseUrl: settings.baseUrl,
      formId,
      to,
      language,
      senderName: formName,
    };
    return {
      id: newId('dlv', now()),
      eventId: null,
      projectId,
      formId,
      keyless: false,
      kind: 'webhook_off',
      receiver: to.toLowerCase(),
      mail: webhookOffMail(context, webhook),
      delaySeconds: 0,
    };
  });
  await queueMails(database, await Promise.all(mails));
}

async function localeOf(database: Database, formId: string): Promise<string | undefined> {
  const form = await findAnyForm(database, formId);
  const version = await findVersion(database, form?.currentVersionId ?? '');
  return version?.definition.settings.locale;
}

/** Of the webhook's URL only the host is named: the rest can be secret. */
function webhookOffMail(context: MailContext, webhook: TurnedOffWebhook): MailMessage {
  const { mail } = context.language;
  const { host } = new URL(webhook.url);
  return writeMail(context, {
    subject: `${mail.webhookTitle}: ${host}`,
    title: mail.webhookTitle,
    paragraphs: [fill(mail.webhookText, { host, id: webhook.id }), mail.webhookMore],
    footer: [mail.whyWebhook],
  });
}

export type TurnOffCause = 'gone' | 'too_long' | 'never_worked';

export type TurnOffOptions = Pick<
  DeliveryOptions,
  'database' | 'auditWriter' | 'secretKey' | 'settings' | 'now' | 'log' | 'metrics'
>;
