import { followedEvents } from '../../domain/events/index.ts';
import { smallestIdAt } from '../../domain/ids.ts';
import type { Database } from '../../store/database/database.ts';
import { type EventHead, findEventHeads, listEventIds } from '../../store/events.ts';
import { LATEST_COMMIT_MS } from '../../store/submissions/submission-writer.ts';
import { type Log, throttledWarning, type Warn } from '../../telemetry/log.ts';
import { GivenEvents } from './given-events.ts';

/** Makes what follows the events of all projects, once for everybody in this process who wants to hear of them. */
export function createEventFeed(options: EventFeedOptions): EventFeed {
  return new PollingFeed(options);
}

/**
 * Each event is given once to those who follow, streams and waits, soon after its commit, and without its body.
 *
 * The feed polls when this process or, by a notification, another one has committed something, and twice a second
 * besides; while nobody follows, not at all. An event can be committed later than its id was made, so a poll
 * begins before the newest event it knows: most of them a second, some of them several, and every few seconds
 * one where no event can be committed any more.
 */
class PollingFeed implements EventFeed {
  readonly #options: EventFeedOptions;
  readonly #warn: Warn;
  readonly #followers = new Set<Follower>();
  /** Those that follow, and those that are about to, and when the last of them left. Only `follow` counts. */
  #users = 0;
  #usedAt = 0;
  /** Given to those who follow: `#start` begins anew, `#pollOnce` goes on. */
  #given = new GivenEvents('');
  /** While it is started: what that resolves, and what polls in between. `follow` starts it, `#tick` ends it. */
  #starting: Promise<void> | undefined;
  #interval: NodeJS.Timeout | undefined;
  /** Begun by the first start, and ended by `close`. */
  #listening: Promise<(() => Promise<void>) | undefined> | undefined;
  /** When polls went back so far, by the clock that the ids are made with. Only `#pollOnce` writes these two. */
  readonly #polledAt = { recent: Number.NEGATIVE_INFINITY, all: Number.NEGATIVE_INFINITY };
  #lastPoll = { at: Number.NEGATIVE_INFINITY, tookMs: 0 };
  /** The timer of a poll that begins soon. Only `#wake` writes it. */
  #scheduled: NodeJS.Timeout | undefined;
  /** The poll under way, and the one that begins after it. Only `#poll` writes them. */
  #polling: Promise<void> = Promise.resolve();
  #nextPoll: Promise<void> | undefined;
  /** The pause after a notification, and whether there was something to notify in it. Only `#notifyOthers` writes them. */
  #notified: NodeJS.Timeout | undefined;
  #owesNotification = false;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#warn = throttledWarning(options.log, options.now, WARN_EVERY_MS);
  }

  announce(): void {
    this.#wake();
    if (this.#options.database.engine === 'postgres') this.#notifyOthers();
  }

  sendText(text: string): void {
    this.#giveText(text);
    const { database } = this.#options;
    if (database.engine === 'postgres') database.notify(CHANNEL, text).catch(this.#report);
  }

  async follow(follower: Follower): Promise<Following> {
    this.#users += 1;
    const leave = () => {
      this.#followers.delete(follower);
      this.#users -= 1;
      this.#usedAt = performance.now();
    };
    try {
      this.#starting ??= this.#start().catch((error: unknown) => {
        this.#starting = undefined;
        throw error;
      });
      await this.#starting;
      // Events that are committed already are given to the others first: the one who comes hears of later ones alone.
      await this.#poll();
      if (follower.onText !== undefined) await this.#listening;
    } catch (error) {
      leave();
      throw error;
    }
    this.#followers.add(follower);
    return { position: this.#given.position, [Symbol.dispose]: leave };
  }

  async close(): Promise<void> {
    // A start under way would set a timer after this.
    await this.#starting?.catch(() => undefined);
    clearInterval(this.#interval);
    clearTimeout(this.#scheduled);
    clearTimeout(this.#notified);
    await this.#polling.catch(() => undefined);
    await (await this.#listening)?.();
  }

  async #start(): Promise<void> {
    this.#listening ??= this.#listen();
    this.#given = new GivenEvents(settledId(this.#options.now()));
    for await (const page of this.#idsAfter(this.#given.position)) for (const id of page) this.#given.add(id);
    this.#interval = setInterval(() => this.#tick(), POLL_MS);
  }

  #tick(): void {
    if (this.#users > 0 || performance.now() - this.#usedAt < IDLE_MS)
      return void this.#poll().catch(this.#report);
    clearInterval(this.#interval);
    this.#starting = undefined;
  }

  /** The embedded database belongs to this process alone. */
  async #listen(): Promise<(() => Promise<void>) | undefined> {
    const { database } = this.#options;
    if (database.engine === 'pglite') return undefined;
    try {
      return await database.listen(CHANNEL, (text = '') =>
        text === '' ? this.#wake() : this.#giveText(text),
      );
    } catch (error) {
      this.#warn({ err: error }, 'Could not listen for events of other processes; polling twice a second.');
      return undefined;
    }
  }

  async *#idsAfter(from: string): AsyncIterable<string[]> {
    for (let after = from; ; ) {
      const page = await listEventIds(this.#options.database, { types: followedEvents, after, limit: PAGE });
      yield page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last;
    }
  }

  /** Resolves after a poll that begins after this call; concurrent calls share it. */
  #poll(): Promise<void> {
    this.#nextPoll ??= this.#polling
      .catch(() => undefined)
      .then(() => {
        this.#nextPoll = undefined;
        this.#polling = this.#pollOnce();
        return this.#polling;
      });
    return this.#nextPoll;
  }

  async #pollOnce(): Promise<void> {
    const { database, now } = this.#options;
    const startedAt = performance.now();
    this.#lastPoll = { at: startedAt, tookMs: 0 };
    const at = now();
    // A clock may be set back.
    const all = Math.abs(at - this.#polledAt.all) >= POLL_ALL_EVERY_MS;
    const recent = all || Math.abs(at - this.#polledAt.recent) >= POLL_RECENT_EVERY_MS;
    const since = smallestIdAt('evt', at - (recent ? RECENT_MS : NEWEST_MS));
    const { position } = this.#given;
    for await (const page of this.#idsAfter(all || since < position ? position : since)) {
      const fresh = page.filter((id) => !this.#given.has(id));
      if (fresh.length === 0) continue;
      const events = await findEventHeads(database, fresh);
      for (const id of fresh) this.#given.add(id);
      for (const follower of this.#followers) follower.onEvents?.(events);
    }
    this.#lastPoll.tookMs = performance.now() - startedAt;
    if (recent) this.#polledAt.recent = at;
    if (!all) return;
    this.#polledAt.all = at;
    this.#given.moveTo(settledId(at));
    for (const follower of this.#followers) follower.onSettled?.(this.#given.position);
  }

  readonly #report = (error: unknown): void =>
    this.#warn({ err: error }, 'Could not read new events; trying again in half a second.');

  /** Polls soon, but takes a small part of the time at most. */
  #wake(): void {
    if (this.#users === 0 || this.#scheduled !== undefined) return;
    const { at, tookMs } = this.#lastPoll;
    const pauseMs = Math.min(POLL_MS, Math.max(PAUSE_MS, tookMs * PAUSE_FACTOR));
    const poll = () => {
      this.#scheduled = undefined;
      this.#poll().catch(this.#report);
    };
    this.#scheduled = setTimeout(poll, Math.max(0, at + pauseMs - performance.now()));
  }

  #giveText(text: string): void {
    for (const follower of this.#followers) follower.onText?.(text);
  }

  #notifyOthers(): void {
    this.#owesNotification = this.#notified !== undefined;
    if (this.#owesNotification) return;
    this.#options.database
      .notify(CHANNEL)
      .catch((error: unknown) =>
        this.#warn({ err: error }, 'Could not notify other processes of events; they poll twice a second.'),
      );
    this.#notified = setTimeout(() => {
      this.#notified = undefined;
      if (this.#owesNotification) this.#notifyOthers();
    }, NOTIFY_EVERY_MS);
  }
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
