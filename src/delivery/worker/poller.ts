import { smallestIdAt } from '../../domain/ids.ts';
import { findDueWork } from '../../store/delivery-queue.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWatermark } from './watermark.ts';
import { createPump } from './worker-loop.ts';

/**
 * Makes what looks for work each second, and sooner when told, and wakes whoever does it: work that is
 * due by the clock, or that another process wrote. One cheap query a look is all that idling costs.
 */
export function createLook(options: LookOptions): Look {
  const { database, now, log, onEvents, onDeliveries, onSessions } = options;
  const events = createWatermark(now);
  const deliveries = createWatermark(now);
  let clock: NodeJS.Timeout | undefined;
  let soon: NodeJS.Timeout | undefined;

  const pump = createPump(
    'look',
    async () => {
      const since = { event: smallestIdAt('evt', events.since()), due: new Date(deliveries.since()) };
      const found = await findDueWork(database, since);
      if (found.events) onEvents();
      else events.advance(found.at.getTime());
      if (found.dueAt !== null) onDeliveries();
      deliveries.advance((found.dueAt ?? found.at).getTime());
      if (found.sessions) onSessions();
      return false;
    },
    log,
  );

  return {
    start() {
      clock = setInterval(pump.wake, LOOK_MS);
      pump.wake();
    },
    soon() {
      soon ??= setTimeout(() => {
        soon = undefined;
        pump.wake();
      }, SOON_MS);
    },
    async stop() {
      clearInterval(clock);
      clearTimeout(soon);
      await pump.stop();
    },
  };
}

const LOOK_MS = 1_000;

/** A busy form's commits tell of work all the time. */
const SOON_MS = 50;

export type Look = {
  start(): void;
  /** Looks within `SOON_MS`, however often it is called. */
  soon(): void;
  stop(): Promise<void>;
};

export type LookOptions = Pick<DeliveryOptions, 'database' | 'now' | 'log'> & {
  /** Events wait to become deliveries. */
  onEvents: () => void;
  /** Deliveries are due. */
  onDeliveries: () => void;
  /** Sessions have ended that were not announced. */
  onSessions: () => void;
};
