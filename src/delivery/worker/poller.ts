import { smallestIdAt } from '../../domain/ids.ts';
import { findDueWork, releaseAbandoned } from '../../store/deliveries/due.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWatermark } from './watermark.ts';
import { createWorkerLoop } from './worker-loop.ts';

/**
 * Makes a poller that asks the database each second, and sooner when scheduled, for work that has become
 * due or that another process has written, and calls back for each kind that it finds. An idle process
 * costs one cheap query a second.
 */
export function createPoller(options: PollerOptions): Poller {
  const { database, now, onEvents, onDeliveries, onSessions, onRemovals, onResumable } = options;
  const events = createWatermark(now);
  const deliveries = createWatermark(now);
  const leases = createWatermark(now);
  let interval: NodeJS.Timeout | undefined;
  let scheduled: NodeJS.Timeout | undefined;

  const loop = createWorkerLoop(
    'poll',
    async () => {
      const since = {
        event: smallestIdAt('evt', events.since()),
        due: new Date(deliveries.since()),
        lease: new Date(leases.since()),
      };
      const found = await findDueWork(database, since);
      if (found.events) onEvents();
      else events.advance(found.at.getTime());
      if (found.abandoned) await releaseAbandoned(database, ABANDONED_AT_ONCE);
      else leases.advance(found.at.getTime());
      if (found.dueAt !== null || found.abandoned) onDeliveries();
      deliveries.advance((found.dueAt ?? found.at).getTime());
      if (found.sessions) onSessions();
      if (found.removals) onRemovals();
      if (found.resumable) onResumable();
      return found.abandoned;
    },
    options,
  );

  return {
    start() {
      interval = setInterval(loop.wake, POLL_MS);
      loop.wake();
    },
    schedule() {
      scheduled ??= setTimeout(() => {
        scheduled = undefined;
        loop.wake();
      }, SCHEDULE_MS);
    },
    async stop() {
      clearInterval(interval);
      clearTimeout(scheduled);
      await loop.stop();
    },
  };
}

const POLL_MS = 1_000;

/** What a process can leave behind when it dies, in one statement. */
const ABANDONED_AT_ONCE = 1_000;

/** A busy form schedules a poll with each commit. */
const SCHEDULE_MS = 50;

export type Poller = {
  start(): void;
  /** Polls within `SCHEDULE_MS`, however often it is called. */
  schedule(): void;
  stop(): Promise<void>;
};

export type PollerOptions = Pick<DeliveryOptions, 'database' | 'now' | 'log' | 'metrics'> & {
  /** Events wait to become deliveries. */
  onEvents: () => void;
  /** Deliveries are due. */
  onDeliveries: () => void;
  /** Sessions have ended and no event says so yet. */
  onSessions: () => void;
  /** Something is still to be removed of what is gone. */
  onRemovals: () => void;
  /** What was postponed for a webhook is to be made due. */
  onResumable: () => void;
};
