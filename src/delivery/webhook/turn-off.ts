import { type NewEntry, systemEntry } from '../../domain/audit.ts';
import { newId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/database/database.ts';
import { queueMails } from '../../store/deliveries/delivery-inserts.ts';
import { listOwners } from '../../store/owners/owners.ts';
import { type TurnedOffWebhook, turnOffWebhook } from '../../store/webhooks/webhooks.ts';
import type { QueuedMail } from '../mail/compose.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWorkerLoop } from '../worker/worker-loop.ts';

/**
 * Makes what turns webhooks off in the background, one after the other, until it succeeds: a process that dies
 * before leaves it to the next failure.
 */
export function createTurnOffs(options: TurnOffOptions): TurnOffs {
  const waiting = new Map<string, TurnOffCause>();
  const loop = createWorkerLoop(
    'turn off',
    async () => {
      const [next] = waiting;
      if (next === undefined) return false;
      const [id, cause] = next;
      await turnOff(options, id, cause);
      waiting.delete(id);
      return waiting.size > 0;
    },
    options,
  );
  return {
    add(id, cause) {
      waiting.set(id, cause);
      loop.wake();
    },
    stop: () => loop.stop(),
  };
}

/**
 * Turns a webhook off and stores the reason. If it has failed for days, mails to the owners of the forms it serves are
 * queued with that.
 */
async function turnOff(options: TurnOffOptions, id: string, cause: TurnOffCause): Promise<void> {
  const { database, auditWriter, now, log, metrics } = options;
  const reason = reasons[cause];
  const webhook = await database.transaction(async (tx) => {
    const off = await turnOffWebhook(tx, { id, reason });
    if (off === null) return null;
    if (cause === 'too_long') await mailOwners(options, tx, off);
    await auditWriter.store(tx, entryOf(off, cause, now()));
    return off;
  });
  if (webhook === null) return;
  metrics?.onTurnedOff(cause);
  log.warn({ webhook: id, reason }, 'Turned a webhook off.');
}

const reasons: Record<TurnOffCause, string> = {
  gone: 'Its receiver answered 410 Gone.',
  too_long: 'It has failed for five days without a success.',
  never_worked: 'Its first 10 attempts failed.',
};

function entryOf({ id, projectId, formId }: TurnedOffWebhook, detail: TurnOffCause, at: number): NewEntry {
  const about = { resource: id, ...(formId !== null && { formId }), detail };
  return systemEntry({ projectId, at, action: 'webhook.turned_off', ...about });
}

/** A project can have thousands of forms, but few people own them. */
const MAX_OWNERS = 20;

async function mailOwners(
  { now }: TurnOffOptions,
  tx: Transaction,
  webhook: TurnedOffWebhook,
): Promise<void> {
  const { projectId } = webhook;
  const owners = await listOwners(tx, { projectId, formId: webhook.formId, limit: MAX_OWNERS });
  // Of the webhook's URL only the host is named: the rest can be secret.
  const { host } = new URL(webhook.url);
  const mails = owners.map(({ formId, address: to }) => ({
    id: newId('dlv', now()),
    eventId: null,
    projectId,
    formId,
    keyless: false,
    kind: 'webhook_off',
    receiver: to.toLowerCase(),
    mail: { to, eventId: null, webhook: { id: webhook.id, host } } satisfies QueuedMail,
    delaySeconds: 0,
  }));
  await queueMails(tx, mails);
}

export type TurnOffs = {
  add(id: string, cause: TurnOffCause): void;
  /** Waits for the one under way. */
  stop(): Promise<void>;
};

type TurnOffCause = 'gone' | 'too_long' | 'never_worked';

type TurnOffOptions = Pick<DeliveryOptions, 'database' | 'auditWriter' | 'now' | 'log' | 'metrics'>;
