import { createFanOut } from './fan-out/fan-out.ts';
import { createMailSender } from './mail/sender.ts';
import type { DeliveryOptions } from './options.ts';
import { createSweeps } from './sweeps/sweeps.ts';
import { createWebhookSender } from './webhook/sender.ts';
import { turnOff } from './webhook/turn-off.ts';
import { createAttempts } from './worker/attempt.ts';
import { createLook } from './worker/poller.ts';
import { createSettler } from './worker/settler.ts';
import { createLoop } from './worker/worker.ts';
import { createPump } from './worker/worker-loop.ts';

export type { DeliveryOptions, DeliverySettings } from './options.ts';

/**
 * Makes what sends everything that the outbox holds, at least once: events become deliveries, due
 * deliveries are tried and tried again by the schedule, and what has outlived its time is swept away.
 *
 * Any number of processes may do so on one database. With no workers, this one only tells the others.
 */
export function createDelivery(options: DeliveryOptions): DeliveryLoop {
  const { database, settings, log } = options;
  if (settings.workers === 0) return createTeller(options);

  const graceOver = new AbortController();
  const webhooks = createWebhookSender(options);
  const mails = createMailSender(options);
  const settle = createSettler({
    database,
    signal: graceOver.signal,
    log,
    onFailing: async (failing) => {
      for (const { id, cause } of failing) await turnOff(options, id, cause);
    },
  });
  const loop = createLoop({
    database,
    workers: settings.workers,
    attempt: createAttempts({ ...options, webhooks, mails }),
    settle,
    onGone: (webhookId) => turnOff(options, webhookId, 'gone'),
    signal: graceOver.signal,
    now: options.now,
    log,
  });
  const fanOut = createFanOut(options);
  const spreading = createPump(
    'fan-out',
    async () => {
      const { spread, more } = await fanOut();
      if (spread > 0) loop.wake();
      return more;
    },
    log,
  );
  const sweeps = createSweeps(options, spreading.wake);
  const look = createLook({
    ...options,
    onEvents: spreading.wake,
    onDeliveries: loop.wake,
    onSessions: sweeps.expire,
  });
  // Nearly always an event; but deliveries are replayed without one.
  const nudge = () => {
    spreading.wake();
    look.soon();
  };

  let listening: Promise<(() => Promise<void>) | undefined> | undefined;
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number) => {
    const unlistened = listening?.then((unlisten) => unlisten?.());
    const deadline = setTimeout(() => graceOver.abort(), graceMs);
    // At the same time: while the database is away, each of them waits for its own time-outs.
    await Promise.all([look.stop(), sweeps.stop(), spreading.stop(), loop.stop(), unlistened]);
    clearTimeout(deadline);
    await webhooks.close();
    mails.close();
  };
  return {
    start() {
      listening = database.listen(CHANNEL, nudge).catch((error: unknown) => {
        log.warn({ err: error }, 'Other processes can not wake this one; it looks for work every second.');
        return undefined;
      });
      sweeps.start();
      look.start();
    },
    nudge,
    stop: (graceMs) => (stopped ??= stop(graceMs)),
  };
}

/** For a process without workers: tells those that have some, in a while and not too often. */
function createTeller({ database, log }: DeliveryOptions): DeliveryLoop {
  let timer: NodeJS.Timeout | undefined;
  return {
    start() {},
    nudge() {
      timer ??= setTimeout(() => {
        timer = undefined;
        database
          .notify(CHANNEL)
          .catch((error: unknown) => log.warn({ err: error }, 'Nobody could be woken.'));
      }, DEBOUNCE_MS);
    },
    async stop() {
      clearTimeout(timer);
    },
  };
}

const CHANNEL = 'delivery';

/** Notifications cost a commit each. */
const DEBOUNCE_MS = 100;

export type DeliveryLoop = {
  start(): void;
  /** Tells that an event was committed. Cheap: call it after each commit. */
  nudge(): void;
  /** Claims no more, finishes what is under way within `graceMs`, and gives back the rest. */
  stop(graceMs: number): Promise<void>;
};
