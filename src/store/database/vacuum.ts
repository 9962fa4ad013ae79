import type { Log } from '../../telemetry/log.ts';
import { findFact, keepFact } from '../installation.ts';
import type { Database } from './database.ts';

/**
 * Vacuums the tables of the embedded database with a fifth dead rows, which nobody else does: PGlite has no
 * autovacuum. Everything waits meanwhile, so that a table which takes long is left unless `isQuiet`.
 */
export async function vacuumTables(db: Database, { isQuiet, log }: Quiet): Promise<void> {
  for (const { name, dead, live, bytes } of await statistics(db)) {
    if (dead < MIN_DEAD || dead < (dead + live) * DEAD_SHARE) continue;
    if (!isQuiet && bytes * VACUUM_MS_PER_BYTE > PAUSE_MS) continue;
    await timed(log, 'Vacuumed a table.', { table: name, bytes }, () => db.execute(`vacuum "${name}"`));
  }
}

/**
 * Writes the tables of answers anew if something of them was removed since they last were, and gives the write-ahead
 * log back, so that nothing of it is left in files. Everything waits meanwhile. `force`: all tables, in any case.
 * Returns which were written.
 */
export async function rewriteErased(
  db: Database,
  { log, force = false }: { log: Log; force?: boolean },
): Promise<string[]> {
  const before = await statistics(db);
  const erased = before.filter(({ name }) => force || tablesOfAnswers.has(name));
  const state = JSON.stringify(Object.fromEntries(before.filter(isOfAnswers).map(stateOf)));
  if (!force && (await findFact(db, REWRITTEN)) === state) return [];
  for (const { name, bytes } of erased) {
    await timed(log, 'Wrote a table anew.', { table: name, bytes }, () =>
      db.execute(`vacuum full "${name}"`),
    );
  }
  await timed(log, 'Gave the write-ahead log back.', {}, async () => {
    // A checkpoint removes the segments before the one that was current at the last.
    for (let round = 0; round < 2; round += 1) {
      await db.execute('select pg_switch_wal()');
      await db.execute('checkpoint');
    }
  });
  await keepFact(db, REWRITTEN, state);
  return erased.map(({ name }) => name);
}

/** Whether it is the time of day for work that everything waits for, by the clock and time zone of this process. */
export function isWithin({ from, until }: DayWindow, now: number): boolean {
  const time = new Date(now);
  const minute = time.getHours() * 60 + time.getMinutes();
  return from <= until ? from <= minute && minute < until : from <= minute || minute < until;
}

/** A part of each day, in minutes since midnight; it may pass midnight. */
export type DayWindow = { from: number; until: number };

async function timed(log: Log, message: string, about: object, work: () => Promise<unknown>): Promise<void> {
  const begin = performance.now();
  await work();
  log.info({ ...about, pausedMs: Math.round(performance.now() - begin) }, message);
}

async function statistics(db: Database): Promise<TableState[]> {
  await db.select('select pg_stat_force_next_flush()');
  const rows = await db.select(
    `select relname as name, n_dead_tup as dead, n_live_tup as live, n_tup_del + n_tup_upd as removed,
       pg_total_relation_size(relid) as bytes
     from pg_stat_user_tables order by relname`,
  );
  return rows.map((row) => ({
    name: String(row.name),
    dead: Number(row.dead),
    live: Number(row.live),
    removed: Number(row.removed),
    bytes: Number(row.bytes),
  }));
}

const isOfAnswers = ({ name }: TableState) => name === 'submissions' || name === 'sessions';

const stateOf = ({ name, removed }: TableState): [string, number] => [name, removed];

/** What holds answers, or the words of those who gave them. */
const tablesOfAnswers: ReadonlySet<string> = new Set([
  'submissions',
  'sessions',
  'events',
  'delivery_queue',
  'deliveries',
  'attempts',
  'uploads',
  'autoresponses',
]);

/** The fact that says how many rows had been removed when the tables were last written anew. */
const REWRITTEN = 'rewritten_at';

const DEAD_SHARE = 0.2;

/** Of fewer, a few pages can be had back. */
const MIN_DEAD = 50;

/** Measured: 13 ms for 15 MB. */
const VACUUM_MS_PER_BYTE = 13 / 15_000_000;

/** The longest pause at any time of day. */
const PAUSE_MS = 50;

type Quiet = { isQuiet: boolean; log: Log };

type TableState = { name: string; dead: number; live: number; removed: number; bytes: number };
