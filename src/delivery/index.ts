import { createAttempts } from './attempt.ts';
import { createFanOut } from './fan-out.ts';
import { createLoop } from './loop.ts';
import { createMailSender } from './mail.ts';
import type { DeliveryOptions } from './options.ts';
import { createPump } from './pump.ts';
import { createSettler } from './settler.ts';
import { createSweeps } from './sweeps.ts';
import { turnOff } from './turn-off.ts';
import { createWebhookSender } from './webhook.ts';

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

  const webhooks = createWebhookSender(options);
  const mails = createMailSender(options);
  const settle = createSettler({
    database,
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
  const nudge = () => {
    spreading.wake();
    loop.wake();
  };
  const sweeps = createSweeps(options, nudge);

  let clock: NodeJS.Timeout | undefined;
  let listening: Promise<(() => Promise<void>) | undefined> | undefined;
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number) => {
    clearInterval(clock);
    await Promise.all([sweeps.stop(), spreading.stop(), listening?.then((unlisten) => unlisten?.())]);
    await loop.stop(graceMs);
    await webhooks.close();
    mails.close();
  };
  return {
    start() {
      clock = setInterval(nudge, LOOK_MS);
      listening = database.listen(CHANNEL, nudge).catch((error: unknown) => {
        log.warn({ err: error }, 'Other processes can not wake this one; it looks for work every second.');
        return undefined;
      });
      sweeps.start();
      nudge();
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

/** What is due, or was written by a process that did not tell, is found within this: two cheap queries. */
const LOOK_MS = 1_000;

/** Notifications cost a commit each. */
const DEBOUNCE_MS = 100;

export type DeliveryLoop = {
  start(): void;
  /** Tells that an event was committed. Cheap: call it after each commit. */
  nudge(): void;
  /** Claims no more, finishes what is under way within `graceMs`, and gives back the rest. */
  stop(graceMs: number): Promise<void>;
};
