import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Metrics } from '../../telemetry/metrics.ts';
import { currentTraceparent } from '../../telemetry/trace-context.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { Database } from '../database/database.ts';
import {
  DatabaseUnavailable,
  LONGEST_STATEMENT_MS,
  MAX_CONFLICTS,
  Overloaded,
  RETRY_WINDOW_MS,
} from '../database/faults.ts';
import type { Queries } from '../database/queries.ts';
import { forEverybody } from '../database/read-slots.ts';
import { type Capacity, NO_CAPACITY } from '../deliveries/fairness.ts';
import type { WriteOutcome } from './explain-conflicts.ts';
import {
  type Commit,
  exclusiveKeysOf,
  type InsertOptions,
  type InsertResult,
  insertSubmissions,
  type NewSubmission,
  type PreparedRow,
  prepare,
} from './submission-insert.ts';

/** Makes the one way submissions are stored, by one process. */
export function createSubmissionWriter(db: WriterDatabase, options: WriterOptions = {}): SubmissionWriter {
  return new GroupWriter(db, options);
}

/**
 * Submissions that arrive together are written together, in one statement and one commit, and each caller is answered
 * after the commit that holds its row.
 *
 * While a group is being written, the next one of its projects is collected; those of other projects do not wait for it,
 * up to `MAX_GROUPS` at once. An idle writer writes at the end of the event loop's turn, never on a timer. The database
 * is sent the next group before the callers of one are answered, so that it works meanwhile.
 */
class GroupWriter implements SubmissionWriter {
  readonly #db: WriterDatabase;
  readonly #options: WriterOptions & InsertOptions & Pick<typeof defaults, 'maxWaiting' | 'maxWaitingBytes'>;
  /** What no group has taken yet: `write` and `#again` add, `#storeNext` takes. */
  #queue: Waiting[] = [];
  /** Of all callers that have no answer yet: `write` adds, `#settle` subtracts. */
  readonly #held = { rows: 0, bytes: 0 };
  /** The projects of the groups that are being written. Only `#store` changes it. */
  readonly #beingWritten = new Set<string>();
  /** Those that write one group after the other: `write` adds, `#run` removes. */
  readonly #running = new Map<symbol, Promise<void>>();
  /** Set by `close`. */
  #isClosing = false;

  constructor(db: WriterDatabase, options: WriterOptions) {
    this.#db = db;
    this.#options = { ...defaults, slot: Math.floor(Math.random() * SLOTS), ...options };
  }

  async write(row: NewSubmission): Promise<WriteOutcome> {
    if (this.#isClosing) throw new DatabaseUnavailable();
    const { maxWaiting, maxWaitingBytes } = this.#options;
    if (this.#held.rows >= maxWaiting) this.#refuseMore();
    const prepared = prepare(row, currentTraceparent());
    if (this.#held.bytes + prepared.json.length > maxWaitingBytes) this.#refuseMore();

    this.#held.bytes += prepared.json.length;
    this.#held.rows += 1;
    const { promise, resolve, reject } = Promise.withResolvers<WriteOutcome>();
    this.#queue.push({ ...prepared, since: performance.now(), tries: 0, resolve, reject });
    if (this.#running.size < MAX_GROUPS && !this.#beingWritten.has(row.projectId)) {
      const key = Symbol('group');
      const ended = forEverybody(() => this.#run(key));
      this.#running.set(key, ended);
    }
    return promise;
  }

  waiting() {
    const { maxWaiting: maxRows, maxWaitingBytes: maxBytes } = this.#options;
    return { ...this.#held, maxRows, maxBytes };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#running.values());
  }

  async #run(key: symbol): Promise<void> {
    await yieldToEventLoop();
    for (let storing = this.#storeNext(); storing !== undefined; ) {
      const answer = await storing;
      const next = this.#storeNext();
      await yieldToEventLoop();
      answer();
      storing = next ?? this.#storeNext();
    }
    // Before anything else runs: a caller that has just been answered may write again, and then needs a further run.
    this.#running.delete(key);
  }

  /** Begins to write what is pending of projects of which nothing is being written, if anything is. */
  #storeNext(): Promise<() => void> | undefined {
    this.#refuseLate();
    const mostRows = this.#db.engine === 'postgres' ? GROUP_ROWS : EMBEDDED_GROUP_ROWS;
    const group = chooseGroup(this.#queue, this.#beingWritten, mostRows);
    if (group.size === 0) return undefined;
    this.#queue = this.#queue.filter((waiting) => !group.has(waiting));
    return this.#store([...group]);
  }

  /** Refuses those that have waited for so long that groups before them used up their retries, one after the other. */
  #refuseLate(): void {
    const oldest = performance.now() - MAX_WAIT_MS;
    const inTime = this.#queue.findIndex(({ since }) => since >= oldest);
    for (const late of this.#queue.splice(0, inTime === -1 ? this.#queue.length : inTime)) {
      this.#settle(late, () => late.reject(new DatabaseUnavailable()));
    }
  }

  /** Writes a group, and gives what answers its callers. */
  async #store(group: Waiting[]): Promise<() => void> {
    const { metrics, tracing } = this.#options;
    const batch = tracing && traceBatch(tracing, group);
    const projects = new Set(group.map(({ row }) => row.projectId));
    for (const project of projects) this.#beingWritten.add(project);
    try {
      const results = await insertSubmissions(this.#db, group, this.#options);
      if (metrics !== undefined) count(metrics, group, results);
      batch?.end();
      return () => {
        for (const [index, waiting] of group.entries()) this.#answer(waiting, results[index]);
      };
    } catch (error) {
      batch?.fail();
      return () => {
        for (const waiting of group) this.#settle(waiting, () => waiting.reject(error));
      };
    } finally {
      for (const project of projects) this.#beingWritten.delete(project);
    }
  }

  #answer(waiting: Waiting, result: InsertResult = { outcome: 'undecided' }): void {
    if (result.outcome === 'undecided') this.#again(waiting);
    else if (result.outcome === 'refused') this.#settle(waiting, () => waiting.reject(result.error));
    else this.#settle(waiting, () => waiting.resolve(result));
  }

  #again(waiting: Waiting): void {
    waiting.tries += 1;
    if (waiting.tries < MAX_CONFLICTS) this.#queue.push(waiting);
    else this.#settle(waiting, () => waiting.reject(new DatabaseUnavailable()));
  }

  #settle(waiting: Waiting, answer: () => void): void {
    this.#held.bytes -= waiting.json.length;
    this.#held.rows -= 1;
    answer();
  }

  #refuseMore(): never {
    this.#options.metrics?.onLimit('waiting_submissions');
    throw new Overloaded();
  }
}

/**
 * Records a batch, which serves many requests and so links to their traces, and in each of these when its
 * submission was handed over and stored, with a link back.
 */
function traceBatch(tracing: Tracing, group: Waiting[]): { end(): void; fail(): void } | undefined {
  const traced = group.filter(({ traceparent }) => traceparent !== undefined);
  if (traced.length === 0) return undefined;
  const batch = tracing.startSpan('store submissions', {
    links: traced.flatMap(({ traceparent }) => traceparent ?? []),
    attributes: { 'forms.batch.size': group.length },
  });
  const links = batch.traceparent === undefined ? [] : [batch.traceparent];
  const end = (failure?: string) => {
    for (const { traceparent: parent, since } of traced) {
      const startedAt = performance.timeOrigin + since;
      const span = tracing.startSpan('store submission', { parent, links, startedAt });
      if (failure !== undefined) span.fail(failure);
      span.end();
    }
    if (failure !== undefined) batch.fail(failure);
    batch.end();
  };
  return { end: () => end(), fail: () => end('not stored') };
}

function count(metrics: WriterMetrics, group: Waiting[], results: InsertResult[]): void {
  const stored = group.filter((_, index) => results[index]?.outcome === 'stored');
  const spam = stored.filter(({ row }) => row.status === 'spam').length;
  metrics.onBatch('submissions', group.length);
  metrics.onAccepted('accepted', stored.length - spam);
  metrics.onAccepted('spam', spam);
}

/** As long as a statement is retried: who has waited for that is answered as those before, with 503. */
const MAX_WAIT_MS = RETRY_WINDOW_MS;

/** How long after it was handed to the writer a submission can be committed, with its event. */
export const LATEST_COMMIT_MS = MAX_WAIT_MS + LONGEST_STATEMENT_MS;

/** One statement's rows: beyond this a larger group gains nothing, and its first caller waits longer. */
const GROUP_ROWS = 500;
/** The embedded database does nothing else meanwhile, for some 0.3 ms a row. */
const EMBEDDED_GROUP_ROWS = 100;
/**
 * Written at once. With one, a submission waited for the commit of another project's flood, and then for its own
 * (`npm run bench -- neighbours`).
 */
const MAX_GROUPS = 3;
/** What PostgreSQL parses in a few milliseconds; one row alone may be larger. */
const GROUP_BYTES = 2 * 1024 * 1024;

/**
 * What a busy server stores in half a second: later callers are refused at once and can retry. Each waiting
 * submission holds a connection and its request, some 40 KiB (`npm run bench -- overload`).
 */
const MAX_WAITING = 4_000;
/** What waiting rows may hold of the process's memory, in UTF-16 units of their JSON. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

const defaults = {
  capacity: () => NO_CAPACITY,
  onCommitted: () => undefined,
  maxWaiting: MAX_WAITING,
  maxWaitingBytes: MAX_WAITING_BYTES,
};

/** Counter rows per form: processes pick one each, so a handful seldom share. */
const SLOTS = 16;

/**
 * Chooses the rows of the next group out of the queue: of projects of which nothing is being written, in the order of the
 * queue. If not all fit into a group, projects take turns, so that the flood of one does not hold up the others.
 *
 * The group ends before the first row that is too much for it, or that claims a session or an upload as another row of
 * the group does: one statement would not see that only one of them may be stored.
 */
function chooseGroup(queue: Waiting[], beingWritten: ReadonlySet<string>, mostRows: number): Set<Waiting> {
  const claimed = new Set<string>();
  const group = new Set<Waiting>();
  let bytes = 0;
  const free = queue.filter(({ row }) => !beingWritten.has(row.projectId));
  for (const waiting of inTurns(free, mostRows)) {
    const claims = exclusiveKeysOf(waiting.row);
    bytes += waiting.json.length;
    const full = group.size === mostRows || (group.size > 0 && bytes > GROUP_BYTES);
    if (full || claims.some((id) => claimed.has(id))) break;
    for (const id of claims) claimed.add(id);
    group.add(waiting);
  }
  return group;
}

/**
 * Projects take turns, by how much of a group the rows before take up of the same project: at first the first row of each.
 * If all fit into one group, the order is that of the queue.
 */
function inTurns(queue: readonly Waiting[], mostRows: number): readonly Waiting[] {
  const takenBy = new Map<string, number>();
  const placed = queue.map((waiting) => {
    const { projectId } = waiting.row;
    const place = takenBy.get(projectId) ?? 0;
    takenBy.set(projectId, place + Math.max(1 / mostRows, waiting.json.length / GROUP_BYTES));
    return { waiting, place };
  });
  const fits = takenBy.values().reduce((sum, taken) => sum + taken, 0) <= 1;
  return fits
    ? queue
    : placed.toSorted((one, other) => one.place - other.place).map(({ waiting }) => waiting);
}

/** Writes submissions in groups. */
export type SubmissionWriter = {
  /**
   * Stores a submission with its event, unless its idempotency key or its session says that there is one,
   * or another has claimed one of its uploads.
   *
   * @throws Overloaded at once if too many wait. DatabaseUnavailable if those before it took too long, or
   *   if it can't be known whether the submission is stored; it may be. The database's error if the row
   *   itself is refused.
   */
  write(row: NewSubmission): Promise<WriteOutcome>;
  /** What is pending to be stored, being stored included, and the most that may. Bytes are UTF-16 units of JSON. */
  waiting(): { rows: number; bytes: number; maxRows: number; maxBytes: number };
  /** Refuses further rows and waits until those that wait are stored. */
  close(): Promise<void>;
};

export type WriterOptions = {
  /** How many deliveries this process can attempt at once beside those that it has; by default none. */
  capacity?: () => Capacity;
  /** Called after each commit, before its callers are answered. Must not throw. */
  onCommitted?: (commit: Commit) => void;
  maxWaiting?: number;
  maxWaitingBytes?: number;
  metrics?: WriterMetrics | undefined;
  tracing?: Tracing | undefined;
};

type WriterDatabase = Pick<Database, keyof Queries | 'engine'>;

type WriterMetrics = Pick<Metrics, 'onAccepted' | 'onBatch' | 'onLimit'>;

type Waiting = PreparedRow & {
  /** When it was handed over, by `performance.now()`. */
  since: number;
  tries: number;
  resolve: (outcome: WriteOutcome) => void;
  reject: (error: unknown) => void;
};

export type { Commit, NewSubmission } from './submission-insert.ts';
