import { setImmediate as nextTurn } from 'node:timers/promises';
import { effectsOf } from '../../domain/events/index.ts';
import { newId, smallestIdAt } from '../../domain/ids.ts';
import { DatabaseUnavailable, isDataError, sqlState } from '../../store/database/faults.ts';
import { fanOutEvents, type NewMail, parkEvent } from '../../store/deliveries/delivery-inserts.ts';
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

  /** A batch that fails is split until the failing event is by itself; that one is parked. */
  async function makeMails(events: StoredEvent[]): Promise<number> {
    try {
      return await queueMailsOf(options, events, await readContext(events));
    } catch (error) {
      if (!isLasting(error)) throw error;
      const [event] = events;
      if (event !== undefined && events.length === 1) return park(options, event, error);
      const middle = Math.ceil(events.length / 2);
      return (await makeMails(events.slice(0, middle))) + (await makeMails(events.slice(middle)));
    }
  }

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
    const mails = await makeMails(events);
    watermark.advance(more ? first.createdAt.getTime() : startedAt);
    return { mails, more };
  };
}

/** Some milliseconds of work: short enough for the embedded database, long enough to be worth a commit. */
const BATCH = 200;
/** Of bodies that are read at once, and of mails that are stored at once; one alone may be larger. */
const BATCH_BYTES = 1024 * 1024;

/** How long mails are made before others have a turn. */
const TURN_MS = 10;

/** Queues the mails of events in groups, and returns how many. Events of a group before a failing one stay queued. */
async function queueMailsOf(
  options: FanOutOptions,
  events: StoredEvent[],
  context: FanOutContext,
): Promise<number> {
  let group: { event: StoredEvent; mails: NewMail[] }[] = [];
  let bytes = 0;
  let count = 0;
  const queue = async () => {
    const mails = firstOncePerDay(group.flatMap((each) => each.mails));
    await fanOutEvents(
      options.database,
      group.map(({ event }) => event.id),
      mails,
    );
    count += mails.length;
    group = [];
    bytes = 0;
  };
  let turnEndsAt = performance.now() + TURN_MS;
  for (const event of events) {
    const mails = mailsFor(options, event, context);
    const size = JSON.stringify(mails).length;
    if (bytes > 0 && bytes + size > BATCH_BYTES) await queue();
    group.push({ event, mails });
    bytes += size;
    if (performance.now() < turnEndsAt) continue;
    await nextTurn();
    turnEndsAt = performance.now() + TURN_MS;
  }
  if (group.length > 0) await queue();
  return count;
}

/** Of the event itself: neither a database that is away nor one that can store nothing at the moment. */
function isLasting(error: unknown): boolean {
  return !(error instanceof DatabaseUnavailable) && (sqlState(error) === undefined || isDataError(error));
}

async function park(
  { database, log, now }: FanOutOptions,
  { id: eventId, type }: StoredEvent,
  error: unknown,
): Promise<number> {
  log.error(
    { err: error, event: eventId },
    'Could not make the mails of an event; its form has a failed delivery instead.',
  );
  const { mails } = effectsOf(type);
  const kind = mails === 'submission' ? 'owner' : mails;
  const parked = { id: newId('dlv', now()), eventId, kind, error: 'The service could not make the mail.' };
  await parkEvent(database, parked);
  return 0;
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
