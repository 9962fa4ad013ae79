import { AsyncLocalStorage } from 'node:async_hooks';
import { restAfter, runSerially } from './serial.ts';

/**
 * Bounds how many reads of one reader (strangers, owners, or a project), and of all, run at once, so that none of them
 * holds the connections that writes and others' reads need. Those that wait take turns by reader. What has no reader,
 * as background work and the identification of callers, is not bounded, and neither are writes.
 *
 * The lists, searches, exports and statistics of a project take turns besides, see `runSeriallyForProject`.
 */
export function createReadQueue({ ofAll, ofOne }: ReadBounds): ReadQueue {
  const readers = new Map<string, { running: number; waiting: (() => void)[] }>();
  let running = 0;

  function startNext(): void {
    for (const [name, reader] of readers) {
      if (running >= ofAll) return;
      if (reader.running >= ofOne) continue;
      const start = reader.waiting.shift();
      if (start === undefined) continue;
      running += 1;
      reader.running += 1;
      // The next turn is another one's.
      readers.delete(name);
      readers.set(name, reader);
      start();
      return;
    }
  }

  function enter(name: string): Promise<void> {
    const reader = readers.get(name) ?? { running: 0, waiting: [] };
    readers.set(name, reader);
    return new Promise((resolve) => {
      reader.waiting.push(resolve);
      startNext();
    });
  }

  function leave(name: string): void {
    running -= 1;
    const reader = readers.get(name);
    if (reader !== undefined) {
      reader.running -= 1;
      if (reader.running === 0 && reader.waiting.length === 0) readers.delete(name);
    }
    startNext();
  }

  async function runBounded<T>(name: string, isTimed: boolean, work: () => Promise<T>): Promise<T> {
    await enter(name);
    try {
      // A read within a read would wait for itself.
      return await current.run({ reader: undefined, holder: name, isTimed }, work);
    } finally {
      leave(name);
    }
  }

  return {
    async run(work) {
      const { reader: name, readsMuch = false } = current.getStore() ?? {};
      if (name === undefined) return work();
      const read = () => runBounded(name, readsMuch, work);
      return readsMuch ? runSeriallyForProject(read) : read();
    },
  };
}

/**
 * Runs what takes long of the project whose request is under way: while others use the service, one after the other,
 * with a rest after each three times as long as it took, so that the project has a quarter of one core. Eight lists, an
 * export, an erasure and a replay at once kept two busy, and others' submissions waited (`npm run bench -- neighbours`).
 */
export async function runSeriallyForProject<T>(work: () => Promise<T>, restOf = restAfter): Promise<T> {
  const { reader } = current.getStore() ?? {};
  if (reader === undefined || holderOf(reader) !== 'projects' || !isUsedByOthers()) return work();
  return runSerially(lastOfProjects, reader, work, { restOf, longestWaitMs: LONGEST_WAIT_MS });
}

const lastOfProjects = new Map<string, Promise<void>>();

/** Runs the work of a request, whose reader is known later: until then its reads are not bounded. */
export function forReader<T>(work: () => T): T {
  return current.run({ reader: undefined }, work);
}

/** Says whose reads those of the current request are, and whether it reads much: then each has `LIST_STATEMENT_MS`. */
export function setReader(reader: string, readsMuch = false): void {
  const request = current.getStore();
  if (request === undefined) return;
  request.reader = reader;
  if (reader !== lastUse.reader) useBefore = lastUse;
  lastUse = { reader, at: performance.now() };
  // A page makes several calls at once.
  request.readsMuch ||= readsMuch;
}

/** Whether the current read has `LIST_STATEMENT_MS` for each statement. */
export function isTimedRead(): boolean {
  return current.getStore()?.isTimed === true;
}

/** Runs a slice of long work, see `createSlices`. What the service does by itself, such as putting off, is not put off. */
export function asSlice<T>(work: () => T): T {
  const request = current.getStore();
  return request?.reader === undefined ? work() : current.run({ ...request, isSlice: true }, work);
}

/** Whether others may go first: the current request is at a slice, or a list, a search, an export or a statistic. */
export function takesLong(): boolean {
  const { isTimed = false, isSlice = false } = current.getStore() ?? {};
  return isTimed || isSlice;
}

/** Runs work that others wait for, too, no matter who came first: without a bound. */
export function forEverybody<T>(work: () => T): T {
  return current.run(undefined, work);
}

/** For whom the current work uses the database; undefined: for the service itself, or for many at once. */
export function currentHolder(): Holder | undefined {
  const { reader, holder = reader } = current.getStore() ?? {};
  return holder === undefined ? undefined : holderOf(holder);
}

function holderOf(reader: string): Holder {
  return reader === 'strangers' || reader === 'owners' ? reader : 'projects';
}

/** Whether another than the caller of the current work uses the service now. */
export function isUsedByOthers(): boolean {
  const { reader, holder = reader } = current.getStore() ?? {};
  const { at } = lastUse.reader === holder ? useBefore : lastUse;
  return performance.now() - at < USED_MS;
}

/** Whose request came last, and the last one before it that was another's. */
let lastUse: Use = { reader: '', at: Number.NEGATIVE_INFINITY };
let useBefore = lastUse;

type Use = { reader: string; at: number };

/** For how long after a request its reader counts as using the service. */
const USED_MS = 1_000;

/** After this one begins out of turn: where each takes seconds, the readers of a project would wait in a row. */
const LONGEST_WAIT_MS = 1_000;

const current = new AsyncLocalStorage<Current | undefined>();

type Current = {
  reader: string | undefined;
  readsMuch?: boolean;
  /** Whose read is under way, to which no bound applies any more. */
  holder?: string;
  isTimed?: boolean;
  isSlice?: boolean;
};

export type Holder = 'strangers' | 'owners' | 'projects';

/** How many reads run at once. */
export type ReadBounds = { ofAll: number; ofOne: number };

export type ReadQueue = { run<T>(work: () => Promise<T>): Promise<T> };
