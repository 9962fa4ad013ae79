import { newId } from '../../domain/ids.ts';
import { queueMails } from '../../store/delivery-inserts.ts';
import { listOwners } from '../../store/owners.ts';
import { type TurnedOffWebhook, turnOffWebhook } from '../../store/webhooks.ts';
import { type MailContext, type MailMessage, writeMail } from '../mail/message.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Turns a webhook off and stores the reason. If it has failed for days, the owners of the forms it serves
 * are mailed. Never throws: a failure is logged.
 */
export async function turnOff(options: TurnOffOptions, id: string, cause: TurnOffCause): Promise<void> {
  const { database, log, metrics } = options;
  const reason = reasons[cause];
  try {
    const webhook = await turnOffWebhook(database, { id, reason });
    if (webhook === null) return;
    metrics?.onTurnedOff(cause);
    log.warn({ webhook: id, reason }, 'Turned a webhook off.');
    if (cause === 'too_long') await mailOwners(options, webhook, reason);
  } catch (error) {
    log.error({ err: error, webhook: id }, 'Could not turn a webhook off; its deliveries go on.');
  }
}

const reasons: Record<TurnOffCause, string> = {
  gone: 'Its receiver answered 410 Gone.',
  too_long: 'It has failed for five days without a success.',
  never_worked: 'Its first 10 attempts failed.',
};

/** A project can have thousands of forms, but few people own them. */
const MAX_OWNERS = 20;

async function mailOwners(options: TurnOffOptions, webhook: TurnedOffWebhook, reason: string): Promise<void> {
  const { database, secretKey, settings, now } = options;
  const { projectId } = webhook;
  const owners = await listOwners(database, { projectId, formId: webhook.formId, limit: MAX_OWNERS });
  await queueMails(
    database,
    owners.map(({ formId, address }) => ({
      id: newId('dlv', now()),
      eventId: null,
      projectId,
      formId,
      keyless: false,
      kind: 'webhook_off',
      receiver: address.toLowerCase(),
      mail: webhookOffMail({ secretKey, baseUrl: settings.baseUrl, formId, to: address }, webhook, reason),
      delaySeconds: 0,
    })),
  );
}

/** Of the webhook's URL only the host is named: the rest can be secret. */
function webhookOffMail(context: MailContext, webhook: TurnedOffWebhook, reason: string): MailMessage {
  const { host } = new URL(webhook.url);
  return writeMail(context, {
    subject: `A webhook was turned off: ${host}`,
    title: 'A webhook was turned off',
    paragraphs: [
      `Nothing is sent to ${host} any more (webhook ${webhook.id}). ${reason}`,
      'Submissions are kept. Once the receiver works again, turn the webhook on and replay what failed.',
    ],
    footer: 'Sent to you as an owner of a form that this webhook serves.',
  });
}

export type TurnOffCause = 'gone' | 'too_long' | 'never_worked';

export type TurnOffOptions = Pick<
  DeliveryOptions,
  'database' | 'secretKey' | 'settings' | 'now' | 'log' | 'metrics'
>;
