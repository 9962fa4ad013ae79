import { effectsOf, isRegistrable } from '../../domain/events/index.ts';
import { demoFormId, newId, smallestIdAt } from '../../domain/ids.ts';
import { fanOutEvents, type NewDelivery } from '../../store/delivery-inserts.ts';
import { listWaitingEvents, type StoredEvent } from '../../store/events.ts';
import type { Webhook } from '../../store/webhooks.ts';
import { createWatermark } from '../worker/watermark.ts';
import { createContextReader, type FanOutContext, type FanOutOptions } from './fan-out-context.ts';
import { mailsFor } from './mails.ts';

/**
 * Makes what turns waiting events into deliveries, one for each receiver: the webhooks that listen, and
 * mails. Each call takes one batch, and returns how many events that were and whether more may wait.
 *
 * Any number of processes may do so at once. Webhook bodies were fixed with the event; mails are made
 * here, from the version of the form that the event belongs to.
 */
export function createFanOut(options: FanOutOptions): () => Promise<{ count: number; more: boolean }> {
  const { database, now } = options;
  const watermark = createWatermark(now);
  const readContext = createContextReader(options);

  return async () => {
    const startedAt = now();
    const since = smallestIdAt('evt', watermark.since());
    const events = await listWaitingEvents(database, { since, limit: BATCH });
    const [first] = events;
    if (first === undefined) {
      watermark.advance(startedAt);
      return { count: 0, more: false };
    }

    const context = await readContext(events);
    const deliveries = events.flatMap((event) => deliveriesFor(options, event, context));
    await fanOutEvents(
      database,
      events.map((event) => event.id),
      firstOncePerDay(deliveries),
    );
    const more = events.length === BATCH;
    watermark.advance(more ? first.createdAt.getTime() : startedAt);
    return { count: events.length, more };
  };
}

/** Some milliseconds of work: short enough for the embedded database, long enough to be worth a commit. */
const BATCH = 200;

function deliveriesFor(options: FanOutOptions, event: StoredEvent, context: FanOutContext): NewDelivery[] {
  const webhooks = webhookDeliveries(options, event, context.webhooks);
  try {
    return [...webhooks, ...mailsFor(options, event, context)];
  } catch (error) {
    options.log.error(
      { err: error, event: event.id },
      'Could not make the mails of an event; only its webhooks are delivered.',
    );
    return webhooks;
  }
}

function webhookDeliveries(options: FanOutOptions, event: StoredEvent, webhooks: Webhook[]): NewDelivery[] {
  const registered = effectsOf(event.type).webhooks;
  if (!isRegistrable(registered) || event.formId === demoFormId) return [];
  return webhooks
    .filter(
      ({ projectId, formId, events }) =>
        events.includes(registered) &&
        (formId === event.formId || (formId === null && projectId === event.projectId)),
    )
    .map(({ id, url }) => ({
      id: newId('dlv', options.now()),
      eventId: event.id,
      projectId: event.projectId,
      formId: event.formId,
      submissionId: event.submissionId,
      kind: event.type,
      receiver: id,
      webhook: { id, url },
      delaySeconds: options.settings.schedule[0] ?? 0,
    }));
}

/** Leaves out all but the first of the deliveries that a form may make to a mailbox only once a day. */
function firstOncePerDay(deliveries: NewDelivery[]): NewDelivery[] {
  const seen = new Set<string>();
  return deliveries.filter(({ oncePerDay: mailbox, formId }) => {
    if (mailbox === undefined) return true;
    const key = `${formId} ${mailbox}`;
    return !seen.has(key) && seen.add(key);
  });
}
