import { type Capacity, NO_CAPACITY, timesOf } from '../store/deliveries/fairness.ts';
import type { Commit } from '../store/submissions/submission-writer.ts';
import { createFanOut } from './fan-out/fan-out.ts';
import { createMailSender } from './mail/sender.ts';
import type { DeliveryOptions } from './options.ts';
import { createSweeps } from './sweeps/sweeps.ts';
import { createWebhookHealth } from './webhook/health.ts';
import { createWebhookSender } from './webhook/sender.ts';
import { createAttempts } from './worker/attempt.ts';
import { createPoller } from './worker/poller.ts';
import { createSettler } from './worker/settler.ts';
import { createWorker } from './worker/worker.ts';
import { createWorkerLoop } from './worker/worker-loop.ts';

export type { DeliveryOptions, DeliverySettings } from './options.ts';

/**
 * Makes what sends everything in the outbox, at least once: events become deliveries, due deliveries are
 * attempted and retried by the schedule, and rows that are old enough are removed.
 *
 * Any number of processes may do so on one database. With a concurrency of 0, this one only notifies the others.
 */
export function createDelivery(options: DeliveryOptions): DeliveryLoop {
  const { database, settings, log } = options;
  if (settings.concurrency === 0) return createNotifier(options);

  const graceOver = new AbortController();
  const webhooks = createWebhookSender(options);
  const mails = createMailSender(options);
  const settle = createSettler({
    ...options,
    signal: graceOver.signal,
    onChanges: (changes) => health.onChanges(changes),
  });
  const worker = createWorker({
    ...options,
    concurrency: settings.concurrency,
    mailConnections: mails.connections,
    times: timesOf(settings.schedule),
    attempt: createAttempts({ ...options, webhooks, mails }),
    settle,
    onGone: (webhookId) => health.onGone(webhookId),
    signal: graceOver.signal,
  });
  const health = createWebhookHealth(options, worker.wake);
  const fanOut = createFanOut(options);
  const fanOutWorker = createWorkerLoop(
    'fan-out',
    async () => {
      const { mails, more } = await fanOut();
      if (mails > 0) worker.wake();
      return more;
    },
    options,
  );
  const sweeps = createSweeps(options, worker.wake);
  const poller = createPoller({
    ...options,
    onEvents: fanOutWorker.wake,
    onDeliveries: worker.wake,
    onSessions: sweeps.expireSessions,
    onRemovals: sweeps.removeFiles,
    onResumable: health.resume,
  });
  const notify = () => {
    fanOutWorker.wake();
    // A replayed delivery has no new event.
    poller.schedule();
  };

  let listening: Promise<(() => Promise<void>) | undefined> | undefined;
  let stopped: Promise<void> | undefined;
  const stop = async (graceMs: number) => {
    const unlistened = listening?.then((unlisten) => unlisten?.());
    const deadline = setTimeout(() => graceOver.abort(), graceMs);
    // At the same time: while the database is away, each of them waits for its own time-outs.
    await Promise.all([poller.stop(), sweeps.stop(), fanOutWorker.stop(), worker.stop(), unlistened]);
    await health.stop();
    clearTimeout(deadline);
    await webhooks.close();
    mails.close();
  };
  return {
    start() {
      listening = database.listen(CHANNEL, notify).catch((error: unknown) => {
        log.warn(
          { err: error },
          'Could not listen for notifications of other processes; polling every second.',
        );
        return undefined;
      });
      sweeps.start();
      poller.start();
    },
    notify,
    capacity: () => worker.capacity(),
    onCommitted({ claims, eventsWait, deliveriesWait }) {
      worker.attempt(claims);
      if (deliveriesWait) worker.wake();
      if (eventsWait) fanOutWorker.wake();
    },
    stop: (graceMs) => (stopped ??= stop(graceMs)),
  };
}

/** For a process that delivers nothing: notifies those that do, after a delay and not too often. */
function createNotifier({ database, settings, log }: DeliveryOptions): DeliveryLoop {
  let timer: NodeJS.Timeout | undefined;
  const notify = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      database
        .notify(CHANNEL)
        .catch((error: unknown) =>
          log.warn({ err: error }, 'Could not notify other processes; they poll every second.'),
        );
    }, DEBOUNCE_MS);
  };
  return {
    start() {},
    notify,
    capacity: () => ({ ...NO_CAPACITY, ...timesOf(settings.schedule) }),
    onCommitted: ({ eventsWait, deliveriesWait }) => {
      if (eventsWait || deliveriesWait) notify();
    },
    async stop() {
      clearTimeout(timer);
    },
  };
}

const CHANNEL = 'delivery';

/** Each notification costs a commit. */
const DEBOUNCE_MS = 100;

export type DeliveryLoop = {
  start(): void;
  /** Reports that an event was committed. Cheap: call it after each commit. */
  notify(): void;
  /** How many deliveries this process can attempt of those that it stores. */
  capacity(): Capacity;
  /** Attempts what this process has leased with a commit, and sees to what else waits. */
  onCommitted(commit: Commit): void;
  /** Claims no more, finishes what is under way within `graceMs`, and releases the rest. */
  stop(graceMs: number): Promise<void>;
};
