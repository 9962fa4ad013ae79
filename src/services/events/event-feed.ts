import { followedEvents } from '../../domain/events/index.ts';
import { smallestIdAt } from '../../domain/ids.ts';
import type { Database } from '../../store/database/database.ts';
import { type EventHead, findEventHeads, listEventIds } from '../../store/events.ts';
import { LATEST_COMMIT_MS } from '../../store/submissions/submission-writer.ts';
import { type Log, throttledWarning } from '../../telemetry/log.ts';

/**
 * Follows the events of all projects, once for everybody in this process who wants to hear of them: streams and
 * waits. Each event is given once to those who follow, soon after its commit, and without its body.
 *
 * It polls when this process or, by a notification, another one has committed something, and twice a second
 * besides; while nobody follows, not at all. An event can be committed later than its id was made, so a poll
 * begins before the newest event it knows: most of them a second, some of them several, and every few seconds
 * one where no event can be committed any more.
 */
export function createEventFeed({ database, now, log }: EventFeedOptions): EventFeed {
  const warn = throttledWarning(log, now, WARN_EVERY_MS);
  const followers = new Set<Follower>();
  /** Those that follow, and those that are about to. */
  let users = 0;
  /** Every event up to here has been given, and no other one can be committed. */
  let position = '';
  /** What has been given beyond the position. */
  const given = new Set<string>();
  let starting: Promise<void> | undefined;
  let interval: NodeJS.Timeout | undefined;
  let listening: Promise<(() => Promise<void>) | undefined> | undefined;
  let usedAt = 0;

  /** By the clock that the ids are made with. */
  const polledAt = { recent: Number.NEGATIVE_INFINITY, all: Number.NEGATIVE_INFINITY };
  let lastPoll = { at: Number.NEGATIVE_INFINITY, tookMs: 0 };
  let scheduled: NodeJS.Timeout | undefined;
  let polling: Promise<void> = Promise.resolve();
  let nextPoll: Promise<void> | undefined;

  let notified: NodeJS.Timeout | undefined;
  let owesNotification = false;

  async function start(): Promise<void> {
    listening ??= listen();
    position = smallestIdAt('evt', now() - SETTLED_MS);
    given.clear();
    for await (const page of idsAfter(position)) for (const id of page) given.add(id);
    interval = setInterval(tick, POLL_MS);
  }

  function tick(): void {
    if (users > 0 || performance.now() - usedAt < IDLE_MS) return void poll().catch(report);
    clearInterval(interval);
    starting = undefined;
  }

  /** The embedded database belongs to this process alone. */
  async function listen(): Promise<(() => Promise<void>) | undefined> {
    if (database.engine === 'pglite') return undefined;
    try {
      return await database.listen(CHANNEL, (text = '') => (text === '' ? wake() : give(text)));
    } catch (error) {
      warn({ err: error }, 'Could not listen for events of other processes; polling twice a second.');
      return undefined;
    }
  }

  async function* idsAfter(from: string): AsyncIterable<string[]> {
    for (let after = from; ; ) {
      const page = await listEventIds(database, { types: followedEvents, after, limit: PAGE });
      yield page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last;
    }
  }

  /** Resolves after a poll that begins after this call; concurrent calls share it. */
  function poll(): Promise<void> {
    nextPoll ??= polling
      .catch(() => undefined)
      .then(() => {
        nextPoll = undefined;
        polling = pollOnce();
        return polling;
      });
    return nextPoll;
  }

  async function pollOnce(): Promise<void> {
    const startedAt = performance.now();
    lastPoll = { at: startedAt, tookMs: 0 };
    const at = now();
    // A clock may be set back.
    const all = Math.abs(at - polledAt.all) >= POLL_ALL_EVERY_MS;
    const recent = all || Math.abs(at - polledAt.recent) >= POLL_RECENT_EVERY_MS;
    const since = smallestIdAt('evt', at - (recent ? RECENT_MS : NEWEST_MS));
    for await (const page of idsAfter(all || since < position ? position : since)) {
      const fresh = page.filter((id) => !given.has(id));
      if (fresh.length === 0) continue;
      const events = await findEventHeads(database, fresh);
      for (const id of fresh) given.add(id);
      for (const follower of followers) follower.onEvents?.(events);
    }
    lastPoll.tookMs = performance.now() - startedAt;
    if (recent) polledAt.recent = at;
    if (!all) return;
    polledAt.all = at;
    moveTo(smallestIdAt('evt', at - SETTLED_MS));
    for (const follower of followers) follower.onSettled?.(position);
  }

  function moveTo(id: string): void {
    if (id <= position) return;
    position = id;
    for (const old of given) if (old <= position) given.delete(old);
  }

  function report(error: unknown): void {
    warn({ err: error }, 'Could not read new events; trying again in half a second.');
  }

  /** Polls soon, but takes a small part of the time at most. */
  function wake(): void {
    if (users === 0 || scheduled !== undefined) return;
    const pauseMs = Math.min(POLL_MS, Math.max(PAUSE_MS, lastPoll.tookMs * PAUSE_FACTOR));
    const waitMs = Math.max(0, lastPoll.at + pauseMs - performance.now());
    scheduled = setTimeout(() => {
      scheduled = undefined;
      poll().catch(report);
    }, waitMs);
  }

  function give(text: string): void {
    for (const follower of followers) follower.onText?.(text);
  }

  function notifyOthers(): void {
    if (notified !== undefined) {
      owesNotification = true;
      return;
    }
    owesNotification = false;
    database
      .notify(CHANNEL)
      .catch((error: unknown) =>
        warn({ err: error }, 'Could not notify other processes of events; they poll twice a second.'),
      );
    notified = setTimeout(() => {
      notified = undefined;
      if (owesNotification) notifyOthers();
    }, NOTIFY_EVERY_MS);
  }

  return {
    announce() {
      wake();
      if (database.engine === 'postgres') notifyOthers();
    },
    sendText(text) {
      give(text);
      if (database.engine === 'postgres') database.notify(CHANNEL, text).catch(report);
    },
    async follow(follower) {
      users += 1;
      const leave = () => {
        followers.delete(follower);
        users -= 1;
        usedAt = performance.now();
      };
      try {
        starting ??= start().catch((error: unknown) => {
          starting = undefined;
          throw error;
        });
        await starting;
        // What is committed already is not given to the one who comes.
        await poll();
        if (follower.onText !== undefined) await listening;
      } catch (error) {
        leave();
        throw error;
      }
      followers.add(follower);
      return { position, [Symbol.dispose]: leave };
    },
    async close() {
      // What begins just now ends with a timer.
      await starting?.catch(() => undefined);
      clearInterval(interval);
      clearTimeout(scheduled);
      clearTimeout(notified);
      await polling.catch(() => undefined);
      await (await listening)?.();
    },
  };
}

/** No event whose id is older than this is committed any more. */
export function settledId(now: number): string {
  return smallestIdAt('evt', now - SETTLED_MS);
}

/** The clocks of several processes differ by less. */
const CLOCKS_DIFFER_MS = 5_000;

const SETTLED_MS = LATEST_COMMIT_MS + CLOCKS_DIFFER_MS;
const POLL_ALL_EVERY_MS = 5_000;

/** Nearly all events are committed within this, also where clocks differ. */
const RECENT_MS = 2_000 + CLOCKS_DIFFER_MS;
const POLL_RECENT_EVERY_MS = 1_000;

/** Most events are committed within this. */
const NEWEST_MS = 1_000;

/** Without any notification, others' events are found so soon. */
const POLL_MS = 500;

/** Between two polls; and how many times as long as the one before took. */
const PAUSE_MS = 25;
const PAUSE_FACTOR = 9;

/** Each notification costs a commit. */
const NOTIFY_EVERY_MS = 50;

/** A caller who has waited often waits again. */
const IDLE_MS = 10_000;

const PAGE = 1_000;
const CHANNEL = 'events';
const WARN_EVERY_MS = 10_000;

export type EventFeed = {
  /** Reports that this process has committed events. Cheap: call it after each commit. */
  announce(): void;
  /** Gives those who follow now, in every process, a text of less than 8,000 bytes. Nothing of it is kept. */
  sendText(text: string): void;
  /** Gives the events that are committed from now on, until it is disposed of. */
  follow(follower: Follower): Promise<Following>;
  /** Ends it permanently. */
  close(): Promise<void>;
};

/** No function may throw. */
export type Follower = {
  /** Each event comes once; those of one poll in the order of their ids. */
  onEvents?(events: readonly EventHead[]): void;
  /** Every event up to this id has been given, and no other one comes. */
  onSettled?(id: string): void;
  /** What any process tells all that follow; it may come twice. */
  onText?(text: string): void;
};

/** `position` is an id: every event up to it is committed. */
export type Following = Disposable & { position: string };

export type EventFeedOptions = {
  database: Database;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
};
