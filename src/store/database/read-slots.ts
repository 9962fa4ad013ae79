import { AsyncLocalStorage } from 'node:async_hooks';
import { restAfter, runSerially } from './serial.ts';

/**
 * Bounds how many reads of one reader (strangers, owners, or a project), and of all, run at once, so that none of them
 * holds the connections that writes and others' reads need. Those that wait take turns by reader. What has no reader,
 * as background work and the identification of callers, is not bounded, and neither are writes.
 *
 * The lists, searches, exports and statistics of a project take turns besides, see `#runSeriallyForProject`.
 */
export class ReadSlots {
  readonly #bounds: ReadBounds;
  readonly #readers = new Map<string, { running: number; waiting: (() => void)[] }>();
  /** Of all readers; written by `#startNext` and `#leave`. */
  #running = 0;
  /** Whose request came last, and the last one before it that was another's; written by `within`. */
  #lastUse = { reader: '', at: Number.NEGATIVE_INFINITY };
  #useBefore = this.#lastUse;
  /** Of what takes long: by project, and of the slices of all. */
  readonly #lastRuns = new Map<string, Promise<void>>();

  constructor(bounds: ReadBounds) {
    this.#bounds = bounds;
  }

  /** Runs a call: what it reads, also later, is read for this use. */
  within<T>(use: Use, work: () => T): T {
    if (use.reader !== this.#lastUse.reader) this.#useBefore = this.#lastUse;
    this.#lastUse = { reader: use.reader, at: performance.now() };
    return current.run(use, work);
  }

  /** Runs a read, as soon as its reader has a slot. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const use = currentUse();
    // A read within a read would wait for itself.
    if (use === undefined || use.during === 'read') return work();
    const read = () => this.#runBounded(use, work);
    return use.readsMuch ? this.#runSeriallyForProject(read) : read();
  }

  /**
   * Runs what takes long of the project whose request is under way: while others use the service, one after the other,
   * with a rest after each three times as long as it took, so that the project has a quarter of one core. Eight lists, an
   * export, an erasure and a replay at once kept two busy, and others' submissions waited (`npm run bench -- neighbours`).
   */
  async #runSeriallyForProject<T>(work: () => Promise<T>, restOf = restAfter): Promise<T> {
    const { reader, during } = currentUse() ?? {};
    const isFree = reader === undefined || during === 'read' || holderOf(reader) !== 'projects';
    if (isFree || !this.isUsedByOthers()) return work();
    return runSerially(this.#lastRuns, reader, work, { restOf, longestWaitMs: LONGEST_WAIT_MS });
  }

  /**
   * Runs a slice of long work, see `createSlices`: one at a time. The turn of the project comes first: whoever waits for
   * that holds up no other project's slices.
   */
  runSlice<T>(work: () => Promise<T>, restOf: () => number): Promise<T> {
    const use = currentUse();
    // What the service does by itself, such as putting off, is not put off.
    const slice = use === undefined ? work : () => current.run({ ...use, during: 'slice' }, work);
    const inOrder = () => runSerially(this.#lastRuns, 'slices', slice, { restOf });
    return this.#runSeriallyForProject(inOrder, restOf);
  }

  /** Whether another than the caller of the current work uses the service now. */
  isUsedByOthers(): boolean {
    const { at } = this.#lastUse.reader === currentUse()?.reader ? this.#useBefore : this.#lastUse;
    return performance.now() - at < USED_MS;
  }

  async #runBounded<T>(use: Use, work: () => Promise<T>): Promise<T> {
    await this.#enter(use.reader);
    try {
      return await current.run({ ...use, during: 'read' }, work);
    } finally {
      this.#leave(use.reader);
    }
  }

  #enter(name: string): Promise<void> {
    const reader = this.#readers.get(name) ?? { running: 0, waiting: [] };
    this.#readers.set(name, reader);
    return new Promise((resolve) => {
      reader.waiting.push(resolve);
      this.#startNext();
    });
  }

  #startNext(): void {
    for (const [name, reader] of this.#readers) {
      if (this.#running >= this.#bounds.ofAll) return;
      if (reader.running >= this.#bounds.ofOne) continue;
      const start = reader.waiting.shift();
      if (start === undefined) continue;
      this.#running += 1;
      reader.running += 1;
      // The next turn is another one's.
      this.#readers.delete(name);
      this.#readers.set(name, reader);
      start();
      return;
    }
  }

  #leave(name: string): void {
    this.#running -= 1;
    const reader = this.#readers.get(name);
    if (reader !== undefined) {
      reader.running -= 1;
      if (reader.running === 0 && reader.waiting.length === 0) this.#readers.delete(name);
    }
    this.#startNext();
  }
}

/** For how long after a request its reader counts as using the service. */
const USED_MS = 1_000;

/** After this one begins out of turn: where each takes seconds, the readers of a project would wait in a row. */
const LONGEST_WAIT_MS = 1_000;

/** For whom the current work uses the database; undefined: for the service itself, or for many at once. */
export function currentUse(): Use | undefined {
  return current.getStore();
}

/** Runs work that others wait for, too, no matter who came first: without a bound. */
export function forEverybody<T>(work: () => T): T {
  return current.run(undefined, work);
}

/** Whether each statement of a use has `LIST_STATEMENT_MS`. */
export function isTimed(use: Use | undefined): boolean {
  return use?.during === 'read' && use.readsMuch;
}

/** Whether others may go first: the current request is at a slice, or a list, a search, an export or a statistic. */
export function takesLong(): boolean {
  const use = currentUse();
  return isTimed(use) || use?.during === 'slice';
}

export function holderOf(reader: string): Holder {
  return reader === 'strangers' || reader === 'owners' ? reader : 'projects';
}

const current = new AsyncLocalStorage<Use | undefined>();

/** For whom a call uses the database. */
export type Use = {
  reader: string;
  /** Whether it is a list, a search, an export or a statistic. */
  readsMuch: boolean;
  /** What of it is under way: a read, to which no bound applies any more, or a slice of long work. */
  during?: 'read' | 'slice';
};

export type Holder = 'strangers' | 'owners' | 'projects';

/** How many reads run at once. */
export type ReadBounds = { ofAll: number; ofOne: number };
