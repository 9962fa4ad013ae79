import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, openConnection } from './connection.ts';

/**
 * Keeps `connections` requests under way until the time is over or the count is reached, and tells how
 * that went. A reply with another status than `expect` is an error; a lost connection throws.
 *
 * `request` makes the next request's bytes; calls that must differ differ there.
 */
export async function hammer(options: HammerOptions): Promise<Load> {
  const {
    port,
    connections = 64,
    seconds = Number.POSITIVE_INFINITY,
    count = Number.POSITIVE_INFINITY,
  } = options;
  const opened = await openConnections(port, connections);
  const meter = startMeter();
  const end = performance.now() + seconds * 1000;
  let begun = 0;

  const run = async (connection: Connection) => {
    while (performance.now() < end && begun < count) {
      begun += 1;
      await meter.time(() => connection.exchange(options.request()), options.expect);
    }
  };
  await Promise.all(opened.map(run));
  const load = meter.stop();
  for (const connection of opened) connection.close();
  return load;
}

/**
 * Sends `perSecond` requests a second whatever the answers are, for `seconds`, over as many connections as
 * it takes, at most `connections`; a request that finds none free waits, and its wait counts.
 */
export async function arrive(options: ArriveOptions): Promise<Load> {
  const { port, perSecond, seconds, connections = 64 } = options;
  const free: { connection: Connection; since: number }[] = [];
  let opened = 0;
  const waiting: ((connection: Connection) => void)[] = [];
  const meter = startMeter();
  const calls: Promise<void>[] = [];
  let failure: { error: unknown } | undefined;

  const take = async () => {
    for (let idle = free.pop(); idle !== undefined; idle = free.pop()) {
      if (performance.now() - idle.since < IDLE_MS) return idle.connection;
      idle.connection.close();
      opened -= 1;
    }
    if (opened === connections) return new Promise<Connection>((resolve) => waiting.push(resolve));
    opened += 1;
    return openConnection(port);
  };
  const give = (connection: Connection) => {
    const next = waiting.shift();
    if (next === undefined) free.push({ connection, since: performance.now() });
    else next(connection);
  };
  const call = (request: Buffer) =>
    meter.time(async () => {
      const connection = await take();
      const reply = await connection.exchange(request);
      give(connection);
      return reply;
    }, options.expect);
  const failed = (error: unknown) => {
    failure ??= { error };
  };

  const start = performance.now();
  for (let sent = 0; sent < perSecond * seconds && options.stopped?.() !== true; ) {
    const due = Math.min(((performance.now() - start) / 1000) * perSecond, perSecond * seconds);
    for (; sent < due; sent++) calls.push(call(options.request()).catch(failed));
    if (failure !== undefined) throw failure.error;
    await sleep(ARRIVAL_STEP_MS);
  }
  await Promise.all(calls);
  const load = meter.stop();
  for (const { connection } of free) connection.close();
  return load;
}

/** Servers close what is idle for some seconds: well before that, a connection is left alone. */
const IDLE_MS = 2_000;

/** Opens them in groups that fit a listener's backlog. */
async function openConnections(port: number, count: number): Promise<Connection[]> {
  const opened: Connection[] = [];
  while (opened.length < count) {
    const group = Math.min(BACKLOG, count - opened.length);
    opened.push(...(await Promise.all(Array.from({ length: group }, () => openConnection(port)))));
  }
  return opened;
}

const BACKLOG = 256;

/** Counts and times calls; `stop` gives what was counted since the start. */
export function startMeter(): Meter {
  const all = createHistogram();
  const byStatus = new Map<string, RecordableHistogram>();
  const start = performance.now();
  let units = 0;
  let errors = 0;
  return {
    async time(call, expect) {
      const began = performance.now();
      const { status } = await call();
      if (expect === undefined || status === expect) units += 1;
      else errors += 1;
      // Histograms hold whole numbers from 1 on: microseconds.
      const micros = Math.max(1, Math.round((performance.now() - began) * 1000));
      all.record(micros);
      const same = byStatus.get(String(status)) ?? createHistogram();
      byStatus.set(String(status), same);
      same.record(micros);
    },
    stop: () => ({
      units,
      errors,
      seconds: (performance.now() - start) / 1000,
      ...latencies(all),
      statuses: Object.fromEntries(
        [...byStatus].map(([status, same]) => [status, { count: same.count, ...latencies(same) }]),
      ),
    }),
  };
}

/** The usual figures of a histogram of microseconds, in milliseconds. */
export function latencies(histogram: RecordableHistogram): Latencies {
  const at = (percentile: number) => histogram.percentile(percentile) / 1000;
  return { p50Ms: at(50), p99Ms: at(99), maxMs: histogram.count === 0 ? 0 : histogram.max / 1000 };
}

/** Fine enough that arrivals at 200 a second come one by one. */
const ARRIVAL_STEP_MS = 1;

export type Latencies = { p50Ms: number; p99Ms: number; maxMs: number };

/** What a load did: `units` are the calls that went well. */
export type Load = Latencies & {
  units: number;
  errors: number;
  seconds: number;
  /** Calls by status. */
  statuses: Record<string, Latencies & { count: number }>;
};

export type Meter = {
  /** Does and times one call. Without `expect` every status is well. Throws what the call throws. */
  time(call: () => Promise<{ status: number | string }>, expect?: number | string): Promise<void>;
  stop(): Load;
};

type Target = { port: number; connections?: number; request: () => Buffer; expect?: number };
export type HammerOptions = Target & { seconds?: number; count?: number };
export type ArriveOptions = Target & { perSecond: number; seconds: number; stopped?: () => boolean };
