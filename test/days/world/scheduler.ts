import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { promisify } from 'node:util';

/**
 * The time of the simulated world. `installScheduler` puts it in the place of every clock and timer of this process,
 * which has to come before anything else is imported: then nothing happens but what is waited for in here.
 *
 * Time stands still while anything runs. It moves to the next timer once no promise, immediate, thread, file or socket
 * is left to wait for; a thread, file or socket that is still at work then would make runs differ, and is an error.
 */
export class Scheduler {
  /** Milliseconds since 1970. */
  now: number;
  /** How many timers have fired. */
  fired = 0;
  /** Asked before time passes: until when nothing has to happen, or undefined; absent: time is never jumped over. */
  idleUntil: (() => Promise<number> | undefined) | undefined;
  /** Called after a jump. Returns whether intervals of minutes, which were jumped over, are made up for once. */
  onJump: (from: number) => boolean = () => true;
  readonly #begin: number;
  #missed: { until: number; areSkipped: boolean } = { until: 0, areSkipped: false };
  readonly #heap = new TimerHeap();
  readonly #anchors = new TimerHeap();
  #immediates: Immediate[] = [];
  #sequence = 0;
  readonly #baseline: Map<string, number>;

  constructor(now: number) {
    this.now = now;
    this.#begin = now;
    // Both are opened when they are first asked for.
    void process.stdout;
    void process.stderr;
    this.#baseline = activeResources();
  }

  /** As `performance.now()`. */
  elapsed(): number {
    return this.now - this.#begin;
  }

  start(callback: () => void, ms: number, repeats: boolean, anchor = false): Timer {
    const timer = new Timer(this, callback, delayOf(ms), repeats, anchor);
    this.arm(timer);
    return timer;
  }

  arm(timer: Timer, ms = timer.ms): void {
    timer.due = this.now + ms;
    this.#sequence += 1;
    timer.sequence = this.#sequence;
    timer.isArmed = true;
    const entry = { due: timer.due, sequence: timer.sequence, timer };
    this.#heap.push(entry);
    if (timer.isAnchor) this.#anchors.push(entry);
  }

  addImmediate(callback: () => void): Immediate {
    const immediate = new Immediate(callback);
    this.#immediates.push(immediate);
    return immediate;
  }

  /** Lets time pass until the promise is settled. */
  async run<T>(until: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    until.then(settled, settled);
    for (;;) {
      await this.#settle();
      if (isSettled) return until;
      await this.#fireNext();
    }
  }

  /** Runs everything that waits for nothing: microtasks, ticks, immediates. */
  async #settle(): Promise<void> {
    await realTurn();
    while (this.#immediates.length > 0) {
      const batch = this.#immediates;
      this.#immediates = [];
      for (const immediate of batch) immediate.run();
      await realTurn();
    }
  }

  async #fireNext(): Promise<void> {
    const first = this.#heap.peek();
    if (first === undefined) throw new Error('Nothing is left that could happen');
    if (first.due > this.now) {
      refuseOutsideWork(this.#baseline);
      const idle = this.idleUntil?.();
      if (idle === undefined) this.now = first.due;
      else this.#passTo(await this.#within(idle));
    }
    const next = this.#heap.peek();
    if (next === undefined || next.due > this.now) return;
    this.#heap.pop();
    this.fired += 1;
    if (this.#isSkipped(next.timer)) next.timer.skip(this);
    else next.timer.fire(this);
  }

  /** To the next timer, or over all until `idleUntil` that are not somebody's own. */
  #passTo(idleUntil: number): void {
    const due = this.#heap.peek()?.due ?? this.now;
    const target = Math.min(idleUntil, this.#anchors.peek()?.due ?? Number.POSITIVE_INFINITY);
    const from = this.now;
    this.now = Math.max(due, target);
    if (this.now > due) this.#missed = { until: this.now, areSkipped: !this.onJump(from) };
  }

  /** What takes no time is waited for. */
  async #within<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    for (let turns = 0; !isSettled; turns++) {
      if (turns > 100) throw new Error('What is to take no time waits for something');
      await this.#settle();
    }
    return promise;
  }

  #isSkipped({ repeats, ms, due }: Timer): boolean {
    return repeats && ms >= MINUTES_MS && due < this.#missed.until && this.#missed.areSkipped;
  }
}

/** Whose memory holds what is set up here: timers of a process that has died do not fire. */
export type Owner = { isDead: boolean };

const owners = new AsyncLocalStorage<Owner | undefined>();

/** Runs something as a process of the service, or as the world, including all that follows from it. */
export function runAs<T>(owner: Owner | undefined, work: () => T): T {
  return owners.run(owner, work);
}

export function currentOwner(): Owner | undefined {
  return owners.getStore();
}

class Timer {
  due = 0;
  sequence = 0;
  isArmed = false;
  readonly isAnchor: boolean;
  ms: number;
  readonly #scheduler: Scheduler;
  readonly #callback: () => void;
  readonly repeats: boolean;
  readonly #inContext: (work: () => void) => void;
  readonly #owner: Owner | undefined;
  #isReferenced = true;
  #id: number | undefined;

  constructor(scheduler: Scheduler, callback: () => void, ms: number, repeats: boolean, isAnchor: boolean) {
    this.#scheduler = scheduler;
    this.#callback = callback;
    this.ms = ms;
    this.repeats = repeats;
    this.isAnchor = isAnchor;
    this.#inContext = AsyncLocalStorage.snapshot();
    // undici has one clock for all its clients, those of other processes included.
    this.#owner = callback.name === 'onTick' ? undefined : currentOwner();
  }

  fire(scheduler: Scheduler): void {
    this.isArmed = false;
    if (this.#owner?.isDead === true) return;
    if (this.repeats) scheduler.arm(this);
    this.#inContext(this.#callback);
  }

  /** Goes on as if it had fired whenever it was due. */
  skip(scheduler: Scheduler): void {
    scheduler.arm(this, this.ms - ((scheduler.now - this.due) % this.ms));
  }

  ref(): this {
    this.#isReferenced = true;
    return this;
  }

  unref(): this {
    this.#isReferenced = false;
    return this;
  }

  hasRef(): boolean {
    return this.#isReferenced;
  }

  refresh(): this {
    this.#scheduler.arm(this);
    return this;
  }

  close(): this {
    this.isArmed = false;
    return this;
  }

  [Symbol.toPrimitive](): number {
    if (this.#id === undefined) {
      this.#id = byId.size + 1;
      byId.set(this.#id, this);
    }
    return this.#id;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Timers that were asked for their numbers. */
const byId = new Map<number, Timer>();

class Immediate {
  readonly #callback: () => void;
  readonly #inContext: (work: () => void) => void = AsyncLocalStorage.snapshot();
  readonly #owner = currentOwner();
  #isCleared = false;

  constructor(callback: () => void) {
    this.#callback = callback;
  }

  run(): void {
    if (!this.#isCleared && this.#owner?.isDead !== true) this.#inContext(this.#callback);
  }

  clear(): void {
    this.#isCleared = true;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}

/** A binary heap by time, then by the order of setting. Entries of timers that were cleared or set anew are skipped. */
class TimerHeap {
  readonly #entries: Entry[] = [];

  push(entry: Entry): void {
    const entries = this.#entries;
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(entries[parent] as Entry, entry)) break;
      entries[at] = entries[parent] as Entry;
      at = parent;
    }
    entries[at] = entry;
  }

  peek(): Entry | undefined {
    for (;;) {
      const first = this.#entries[0];
      if (first === undefined || isCurrent(first)) return first;
      this.pop();
    }
  }

  pop(): void {
    const entries = this.#entries;
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const right = entries[child + 1];
      if (right !== undefined && isBefore(right, entries[child] as Entry)) child += 1;
      const smaller = entries[child];
      if (smaller === undefined || isBefore(last, smaller)) break;
      entries[at] = smaller;
      at = child;
    }
    entries[at] = last;
  }
}

type Entry = { due: number; sequence: number; timer: Timer };

function isBefore(a: Entry, b: Entry): boolean {
  return a.due < b.due || (a.due === b.due && a.sequence < b.sequence);
}

function isCurrent({ sequence, timer }: Entry): boolean {
  return timer.isArmed && timer.sequence === sequence;
}

/** Puts the world's time in the place of the process's own, which begins at `now`. */
export function installScheduler(now: number): Scheduler {
  const scheduler = new Scheduler(now);
  const setTimeout = (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
    scheduler.start(named(callback, args), Number(ms), false);
  const setInterval = (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
    scheduler.start(named(callback, args), Number(ms), true);
  const setImmediate = (callback: (...args: unknown[]) => void, ...args: unknown[]) =>
    scheduler.addImmediate(() => callback(...args));
  const clear = (timer: unknown) => {
    if (timer instanceof Timer) timer.close();
    else if (timer instanceof Immediate) timer.clear();
    else if (typeof timer === 'number' || typeof timer === 'string') byId.get(Number(timer))?.close();
    else if (timer !== undefined && timer !== null) realClear(timer as NodeJS.Timeout);
  };
  const sleep = (ms?: number, value?: unknown, options: SleepOptions = {}) =>
    abortable(options.signal, (resolve) => {
      const timer = setTimeout(() => resolve(value), ms);
      return () => timer.close();
    });
  const yieldToEventLoop = (value?: unknown, options: SleepOptions = {}) =>
    abortable(options.signal, (resolve) => {
      const immediate = setImmediate(() => resolve(value));
      return () => immediate.clear();
    });
  Object.defineProperty(setTimeout, promisify.custom, { value: sleep });
  Object.defineProperty(setImmediate, promisify.custom, { value: yieldToEventLoop });
  const global = {
    setTimeout,
    setInterval,
    setImmediate,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
  Object.assign(globalThis, global);
  Object.assign(timers, global);
  Object.assign(timersPromises, {
    setTimeout: sleep,
    setImmediate: yieldToEventLoop,
    setInterval: unsupported,
  });
  syncBuiltinESMExports();

  globalThis.Date = dateOf(() => scheduler.now);
  Object.defineProperty(performance, 'now', { value: () => scheduler.elapsed() });
  const hrtime = () => [Math.floor(scheduler.elapsed() / 1000), (scheduler.elapsed() % 1000) * 1e6];
  process.hrtime = Object.assign(hrtime, {
    bigint: () => BigInt(Math.round(scheduler.elapsed() * 1e6)),
  }) as typeof process.hrtime;
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new DOMException('The operation timed out', 'TimeoutError')), ms);
    return controller.signal;
  };
  return scheduler;
}

/** Keeps the name, by which some are told apart. */
function named(callback: (...args: unknown[]) => void, args: unknown[]): () => void {
  return args.length === 0 ? callback : () => callback(...args);
}

function unsupported(): never {
  throw new Error('Nobody uses it yet');
}

function abortable<T>(
  signal: AbortSignal | undefined,
  begin: (resolve: (value: T) => void) => () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const refuse = () => reject(new DOMException('The operation was aborted', 'AbortError'));
    if (signal?.aborted) return refuse();
    const abort = () => {
      stop();
      refuse();
    };
    const stop = begin((value) => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    });
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** The same class to all that test for it. */
function dateOf(now: () => number): DateConstructor {
  const RealDate = Date;
  return new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
  });
}

/** Intervals of so much and more need not fire after each jump. */
const MINUTES_MS = 30_000;

function delayOf(ms: number): number {
  return ms >= 1 && ms <= MAX_DELAY_MS ? Math.trunc(ms) : 1;
}

/** Node fires those with more at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** A turn of the real event loop, after which all microtasks and ticks of the turn before have run. */
function realTurn(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve));
}

const realSetImmediate = globalThis.setImmediate;
const realClear = globalThis.clearTimeout;

function refuseOutsideWork(baseline: Map<string, number>): void {
  for (const [name, count] of activeResources()) {
    if (count > (baseline.get(name) ?? 0)) throw new Error(`Time would pass while a ${name} is at work`);
  }
}

function activeResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) {
    if (name !== 'Timeout' && name !== 'Immediate') counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

type SleepOptions = { signal?: AbortSignal };
