import { effectsOf } from '../../domain/events/index.ts';
import { newId, smallestIdAt } from '../../domain/ids.ts';
import { isDataError, splitBatch } from '../../store/database/faults.ts';
import { fanOutEvents, type NewMail, parkEvent } from '../../store/deliveries/delivery-inserts.ts';
import { listWaitingEvents, type StoredEvent } from '../../store/events.ts';
import { MakingFailed, making } from '../mail/compose.ts';
import { createWatermark } from '../worker/watermark.ts';
import { createContextReader, type FanOutOptions, mailsFor } from './mails.ts';

/**
 * Makes what turns waiting events into mails, one for each address; their deliveries to webhooks were queued
 * with them. Each call takes one batch, and returns how many mails that were and whether more events may wait.
 *
 * Any number of processes may do so at once.
 */
export function createFanOut(options: FanOutOptions): () => Promise<{ mails: number; more: boolean }> {
  const { database, now } = options;
  const watermark = createWatermark(now);
  const readContext = createContextReader(options);

  /** An event of which nobody can tell whom it is mailed to is parked. Returns how many mails groups of the others cause. */
  const makeMails = (events: StoredEvent[]) =>
    splitBatch(
      events,
      async (part) => {
        const context = await readContext(part);
        const wanted = making(() => part.flatMap((event) => mailsFor(options, event, context)));
        const mails = firstOncePerDay(wanted);
        await fanOutEvents(
          database,
          part.map(({ id }) => id),
          mails,
        );
        return [mails.length];
      },
      (event, error) => park(options, event, error),
      isLasting,
    );

  return async () => {
    const startedAt = now();
    const since = smallestIdAt('evt', watermark.since());
    const { events, more } = await listWaitingEvents(database, {
      since,
      limit: BATCH,
      maxBytes: BATCH_BYTES,
    });
    const [first] = events;
    if (first === undefined) {
      watermark.advance(startedAt);
      return { mails: 0, more };
    }
    const mails = sumOf(await makeMails(events));
    watermark.advance(more ? first.createdAt.getTime() : startedAt);
    return { mails, more };
  };
}

/** Some milliseconds of work: short enough for the embedded database, long enough to be worth a commit. */
const BATCH = 100;
/** Of bodies that are read at once; one alone may be larger. */
const BATCH_BYTES = 1024 * 1024;

/** Of the event itself, not of a database or a network that fails at the moment. */
function isLasting(error: unknown): boolean {
  return error instanceof MakingFailed || isDataError(error);
}

async function park(
  { database, log, now }: FanOutOptions,
  { id: eventId, type }: StoredEvent,
  error: unknown,
): Promise<number[]> {
  log.error(
    { err: error, event: eventId },
    'Could not make the mails of an event; its form has a failed delivery instead.',
  );
  const { mails } = effectsOf(type);
  const kind = mails === 'submission' ? 'owner' : mails;
  const parked = { id: newId('dlv', now()), eventId, kind, error: 'The service could not make the mail.' };
  await parkEvent(database, parked);
  return [];
}

function sumOf(counts: number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
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
