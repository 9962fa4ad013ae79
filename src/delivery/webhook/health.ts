import { type NewEntry, systemEntry } from '../../domain/audit.ts';
import { longestTotal } from '../../domain/delivery/retry.ts';
import { newId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/database/database.ts';
import { queueMails } from '../../store/deliveries/enqueue-mails.ts';
import { findResumable, postponeDeliveries, resumeDeliveries } from '../../store/deliveries/postpone.ts';
import type { HealthChange } from '../../store/deliveries/settle.ts';
import { listOwners } from '../../store/owners/owners.ts';
import {
  listFailingWebhooks,
  type TurnedOffWebhook,
  turnOffWebhook,
} from '../../store/webhooks/failing-webhooks.ts';
import type { QueuedMail } from '../mail/compose.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWorkerLoop } from '../worker/worker-loop.ts';

/**
 * Makes what follows, in the background, from what the results of a webhook say of its receiver. When a circuit breaker
 * opens and closes, and when a webhook has failed for too long, is decided where results are stored, in the database,
 * so that all processes and the deliveries stored meanwhile follow.
 *
 * - The deliveries of a failing webhook wait together: those that are due before its receiver is tried again are
 *   postponed, and made due when it answers. A process that dies while it does that leaves it to the next poll.
 * - A webhook whose receiver is gone, or has failed for too long, is turned off. A process that dies before leaves that
 *   to the next failure.
 *
 * `onDue` is called when deliveries have become due.
 */
export function createWebhookHealth(options: HealthOptions, onDue: () => void): WebhookHealth {
  const { database, settings, metrics } = options;
  const totalSeconds = longestTotal(settings.schedule);
  const breaker = createFollower<BreakerChange>('circuit breaker', options, async (webhookId, change) => {
    if (change.change === 'opened') {
      const { tenant, openUntil } = change;
      await postponeDeliveries(database, { webhookId, tenant, openUntil, totalSeconds });
      if (change.isAgain) return;
    }
    await report(options, webhookId, change);
  });
  const resumption = createWorkerLoop(
    'resumption',
    async () => {
      const webhookId = await findResumable(database);
      if (webhookId === null) return false;
      await resumeDeliveries(database, webhookId);
      onDue();
      return true;
    },
    options,
  );
  const turnOffs = createFollower<TurnOffCause>('turn off', options, (id, cause) =>
    turnOff(options, id, cause),
  );
  return {
    onChanges(changes) {
      for (const change of changes) {
        if (change.change === 'failing') turnOffs.add(change.id, change.cause);
        else {
          metrics?.onBreaker(change.change);
          breaker.add(change.id, change);
          if (change.change === 'closed') resumption.wake();
        }
      }
    },
    resume: resumption.wake,
    onGone: (webhookId) => turnOffs.add(webhookId, 'gone'),
    async stop() {
      await Promise.all([breaker.stop(), resumption.stop(), turnOffs.stop()]);
    },
  };
}

/** Makes a loop that acts on the last thing that is known of each webhook, one after the other, until it succeeds. */
function createFollower<Known>(
  name: string,
  options: HealthOptions,
  act: (webhookId: string, known: Known) => Promise<void>,
) {
  const waiting = new Map<string, Known>();
  const loop = createWorkerLoop(
    name,
    async () => {
      const [next] = waiting;
      if (next === undefined) return false;
      const [id, known] = next;
      await act(id, known);
      // A result that came in while this was acted on stays, and is acted on next.
      if (waiting.get(id) === known) waiting.delete(id);
      return waiting.size > 0;
    },
    options,
  );
  return {
    add(webhookId: string, known: Known) {
      waiting.set(webhookId, known);
      loop.wake();
    },
    stop: () => loop.stop(),
  };
}

/**
 * Turns a webhook off and stores the reason. If it has failed for days, emails to the owners of the forms it serves are
 * queued with that.
 */
async function turnOff(options: HealthOptions, id: string, cause: TurnOffCause): Promise<void> {
  const { database, auditWriter, now, metrics } = options;
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
  await report(options, id, { change: 'off', reason });
}

/**
 * Says in the log, and in a trace, what has become of a webhook: by its host alone, since the rest of a URL can be
 * secret.
 */
async function report(
  { database, log, tracing }: HealthOptions,
  id: string,
  { change, ...known }: Reported,
): Promise<void> {
  const { items } = await listFailingWebhooks(database, { limit: 1, id });
  const [webhook] = items;
  if (webhook === undefined) return;
  const { host, error, failingSince } = { ...webhook, ...('failingSince' in known && known) };
  const facts = {
    webhook: id,
    host,
    error,
    failingSince,
    ...('reason' in known && { reason: known.reason }),
  };
  log[change === 'closed' ? 'info' : 'warn'](facts, reports[change]);
  const span = tracing?.startSpan('webhook health');
  span?.addEvent(`webhook ${change}`, {
    'forms.webhook.id': id,
    'forms.webhook.host': host,
    'forms.webhook.error': error ?? undefined,
    'forms.webhook.failing_since': failingSince?.toISOString(),
  });
  span?.end();
}

const reports = {
  opened: 'A webhook fails; its other deliveries wait until its receiver is tried again.',
  closed: 'A webhook works again; what waited for it is due.',
  off: 'Turned a webhook off.',
};

type Reported =
  | { change: 'opened' }
  | { change: 'closed'; failingSince: Date | null }
  | { change: 'off'; reason: string };

const reasons: Record<TurnOffCause, string> = {
  gone: 'Its receiver answered 410 Gone.',
  too_long: 'It has failed for five days without a success.',
  never_worked: 'Its first 10 attempts failed.',
};

function entryOf({ id, projectId, formId }: TurnedOffWebhook, detail: TurnOffCause, at: number): NewEntry {
  const about = { resource: id, ...(formId !== null && { formId }), detail };
  return systemEntry({ projectId, at, action: 'webhook.turned_off', ...about });
}

async function mailOwners({ now }: HealthOptions, tx: Transaction, webhook: TurnedOffWebhook): Promise<void> {
  const { projectId } = webhook;
  const owners = await listOwners(tx, { projectId, formId: webhook.formId });
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

export type WebhookHealth = {
  /** Sees to webhooks about which results have changed what is known. */
  onChanges(changes: HealthChange[]): void;
  /** Makes due what waits for webhooks that work again. */
  resume: () => void;
  /** The receiver has answered that it wants no more. */
  onGone(webhookId: string): void;
  /** Waits for what is under way. */
  stop(): Promise<void>;
};

type BreakerChange = Exclude<HealthChange, { change: 'failing' }>;

type TurnOffCause = 'gone' | 'too_long' | 'never_worked';

export type HealthOptions = Pick<
  DeliveryOptions,
  'database' | 'auditWriter' | 'settings' | 'now' | 'log' | 'metrics' | 'tracing'
>;
