import { newId } from '../../domain/ids.ts';
import { insertDeliveries } from '../../store/delivery-inserts.ts';
import { listOwners } from '../../store/owners.ts';
import { type TurnedOffWebhook, turnOffWebhook } from '../../store/webhooks.ts';
import { webhookOffMail } from '../mail/templates/webhook-off.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Turns a webhook off and notes why. If it has failed for days, the owners of the forms it serves are
 * mailed: they may not know. What the log says of a failure here is all that becomes of it.
 */
export async function turnOff(options: TurnOffOptions, id: string, cause: TurnOffCause): Promise<void> {
  const { database, log } = options;
  const reason = reasons[cause];
  try {
    const webhook = await turnOffWebhook(database, { id, reason });
    if (webhook === null) return;
    log.warn({ webhook: id, reason }, 'Turned a webhook off.');
    if (cause === 'too_long') await mailOwners(options, webhook, reason);
  } catch (error) {
    log.error({ err: error, webhook: id }, 'A webhook could not be turned off.');
  }
}

const reasons: Record<TurnOffCause, string> = {
  gone: 'Its receiver answered 410 Gone.',
  too_long: 'It has failed for five days without a success.',
  never_worked: 'Its first 10 attempts failed.',
};

/** A project may have very many forms; its people are few. */
const MAX_OWNERS = 20;

async function mailOwners(options: TurnOffOptions, webhook: TurnedOffWebhook, reason: string): Promise<void> {
  const { database, secretKey, settings, now } = options;
  const { projectId } = webhook;
  const owners = await listOwners(database, { projectId, formId: webhook.formId, limit: MAX_OWNERS });
  await insertDeliveries(
    database,
    owners.map(({ formId, address }) => ({
      id: newId('dlv', now()),
      eventId: null,
      projectId,
      formId,
      submissionId: null,
      kind: 'webhook_off',
      receiver: address.toLowerCase(),
      mail: webhookOffMail(
        { secretKey, baseUrl: settings.baseUrl, formId, to: address },
        { ...webhook, reason },
      ),
      delaySeconds: 0,
    })),
  );
}

export type TurnOffCause = 'gone' | 'too_long' | 'never_worked';

export type TurnOffOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'settings' | 'now' | 'log'>;
