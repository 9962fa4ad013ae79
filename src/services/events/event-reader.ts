import type { Queries } from '../../store/database/database.ts';
import { type EventHead, listEventHeads } from '../../store/events.ts';
import { type EventFeed, type Following, settledId } from './event-feed.ts';
import { GivenEvents } from './given-events.ts';

/**
 * Opens what reads the events of a project, or of one form of it, for one reader: those after `cursor`, or else those
 * that are committed from now on. None is missed, and none is given twice.
 */
export async function openEventReader(feed: EventFeed, options: EventReaderOptions): Promise<EventReader> {
  const reader = new EventReader(options);
  await reader.follow(feed);
  return reader;
}

/**
 * A reader that is slower than the events come is not waited for: beyond a bound, what is queued for it is dropped
 * and read from the database again when it asks.
 */
export class EventReader implements Disposable {
  readonly #options: EventReaderOptions;
  /** What is heard of new events: set by `follow`. */
  #following: Following | undefined;
  /** Events, and between them the ids up to which those before are all there are. The feed adds, `read` takes. */
  readonly #queue: (EventHead | string)[] = [];
  /** Whether events were dropped: set by the feed, and taken back by `read`, which then reads them. */
  #overflowed = false;
  /** Ends a `wait`, which sets it. */
  #notify = () => {};
  /** Given to the reader. Its position is set by `follow`. */
  #given = new GivenEvents('');
  /** Where to go on in the database; undefined if what comes is in the queue. Only reads change these three. */
  #unreadAfter: string | undefined;
  /** What was read from there, the next first. */
  #stored: EventHead[] = [];
  /** No event whose id is older was committed after that. */
  #settled = '';

  constructor(options: EventReaderOptions) {
    this.#options = options;
    this.#unreadAfter = options.cursor;
  }

  /** Hears of new events from now on. */
  async follow(feed: EventFeed): Promise<void> {
    this.#following = await feed.follow({
      onEvents: (events) => {
        const wanted = events.filter((event) => this.#isWanted(event));
        if (wanted.length === 0) return;
        this.#queue.push(...wanted);
        if (this.#queue.length > MAX_QUEUED) {
          this.#queue.length = 0;
          this.#overflowed = true;
        }
        this.#notify();
      },
      onSettled: (id) => {
        if (this.#overflowed) return;
        if (typeof this.#queue.at(-1) === 'string') this.#queue.pop();
        this.#queue.push(id);
      },
    });
    this.#given = new GivenEvents(this.#options.cursor ?? this.#following.position);
  }

  /** The next few events; none if there are none yet. */
  async read(): Promise<Read[]> {
    for (;;) {
      if (this.#overflowed) {
        this.#overflowed = false;
        this.#queue.length = 0;
        this.#stored = [];
        this.#unreadAfter = this.cursor();
      }
      if (!this.#isBehind()) return this.#readQueued();
      const read = await this.#readStored(this.#unreadAfter ?? this.cursor());
      if (read.length > 0) return read;
    }
  }

  /** Waits until there may be some, at most so long, or until the signal is aborted. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isBehind() || this.#queue.length > 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const notify = () => resolve();
    this.#notify = notify;
    const timer = setTimeout(notify, ms);
    signal.addEventListener('abort', notify, { once: true });
    await promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', notify);
  }

  /** Where another reader may go on, if all that was read is used; it reads those of the last seconds again. */
  cursor(): string {
    return this.#given.position;
  }

  [Symbol.dispose](): void {
    this.#following?.[Symbol.dispose]();
  }

  #isWanted(event: EventHead): boolean {
    const { projectId, formId, types } = this.#options;
    const isOfForm = formId === '' || event.formId === formId;
    return event.projectId === projectId && isOfForm && types.includes(event.type);
  }

  #isBehind(): boolean {
    return this.#overflowed || this.#unreadAfter !== undefined || this.#stored.length > 0;
  }

  /** Up to what can still be committed, the position follows each event. */
  async #readStored(after: string): Promise<Read[]> {
    const { database, now, projectId, formId, types } = this.#options;
    if (this.#stored.length === 0) {
      this.#settled = settledId(now());
      this.#stored = await listEventHeads(database, { projectId, formId, types, after, limit: PAGE });
      this.#unreadAfter = this.#stored.length < PAGE ? undefined : this.#stored.at(-1)?.id;
    }
    const read = this.#stored.splice(0, AT_ONCE).flatMap((event) => {
      const isFresh = this.#given.add(event.id);
      if (event.id < this.#settled) this.#given.moveTo(event.id);
      return isFresh ? { event, cursor: this.cursor() } : [];
    });
    if (this.#stored.length === 0 && this.#unreadAfter === undefined) this.#given.moveTo(this.#settled);
    return read;
  }

  #readQueued(): Read[] {
    const read: Read[] = [];
    while (read.length < AT_ONCE) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      if (typeof next === 'string') this.#given.moveTo(next);
      else if (this.#given.add(next.id)) read.push({ event: next, cursor: this.cursor() });
    }
    return read;
  }
}

const PAGE = 200;

/** Bodies have up to 256 KiB each, and every reader may hold those of a group. */
const AT_ONCE = 5;

/** Some hundred bytes each. */
const MAX_QUEUED = 1_000;

/** An event, and where to go on after it. */
type Read = { event: EventHead; cursor: string };

export type EventReaderOptions = {
  database: Queries;
  /** Milliseconds since 1970. */
  now: () => number;
  projectId: string;
  /** Empty: all forms. */
  formId: string;
  types: readonly string[];
  cursor: string | undefined;
};
