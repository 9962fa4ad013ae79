import { smallestIdAt } from '../../domain/ids.ts';
import { fanOutEvents, type NewMail } from '../../store/delivery-inserts.ts';
import { listWaitingEvents, type StoredEvent } from '../../store/events.ts';
import { createWatermark } from '../worker/watermark.ts';
import { createContextReader, type FanOutContext, type FanOutOptions } from './fan-out-context.ts';
import { mailsFor } from './mails.ts';

/**
 * Makes what turns waiting events into mails, one for each address; their deliveries to webhooks were queued
 * with them. Each call takes one batch, and returns how many mails that were and whether more events may wait.
 *
 * Any number of processes may do so at once. Mails are made from the version of the form that the event
 * belongs to.
 */
export function createFanOut(options: FanOutOptions): () => Promise<{ mails: number; more: boolean }> {
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
      return { mails: 0, more: false };
    }

    const context = await readContext(events);
    const mails = events.flatMap((event) => mailsOf(options, event, context));
    await fanOutEvents(
      database,
      events.map((event) => event.id),
      firstOncePerDay(mails),
    );
    const more = events.length === BATCH;
    watermark.advance(more ? first.createdAt.getTime() : startedAt);
    return { mails: mails.length, more };
  };
}

/** Some milliseconds of work: short enough for the embedded database, long enough to be worth a commit. */
const BATCH = 200;

function mailsOf(options: FanOutOptions, event: StoredEvent, context: FanOutContext): NewMail[] {
  try {
    return mailsFor(options, event, context);
  } catch (error) {
    options.log.error({ err: error, event: event.id }, 'Could not make the mails of an event.');
    return [];
  }
}

/** Leaves out all but the first of the mails that a form may send to a mailbox only once a day. */
function firstOncePerDay(mails: NewMail[]): NewMail[] {
  const seen = new Set<string>();
  return mails.filter(({ oncePerDay: mailbox, formId }) => {
    if (mailbox === undefined) return true;
    const key = `${formId} ${mailbox}`;
    return !seen.has(key) && seen.add(key);
  });
}
