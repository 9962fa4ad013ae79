import type { IMigrator } from '@mikro-orm/core';
import { StartError } from '../../domain/errors/system-errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { migrations } from '../migrations/index.ts';
import type { Queries } from './queries.ts';

/** Runs the pending migrations of a database. Those that take longer than a second are in the log. */
export async function runMigrations(migrator: IMigrator, log: Log): Promise<void> {
  let finish = () => {};
  migrator.on('migrating', ({ name }) => {
    finish = reportProgress(log, { migration: name }, [
      'Still migrating the database.',
      'Migrated the database.',
    ]);
  });
  migrator.on('migrated', () => finish());
  try {
    await migrator.up();
  } finally {
    finish();
  }
}

/**
 * Logs what goes on after a second and each half minute from then on, and once that it is over. Returns what
 * to call then; of what is over within a second nothing is logged.
 */
export function reportProgress(log: Log, facts: object, [during, after]: [string, string]): () => void {
  const begin = performance.now();
  const elapsed = () => performance.now() - begin;
  const report = (text: string) => log.info({ ...facts, seconds: Math.round(elapsed() / 1000) }, text);
  const repeat = () => {
    report(during);
    timer = setTimeout(repeat, REPORT_AGAIN_MS);
  };
  let timer = setTimeout(repeat, SLOW_MS);
  let finished = false;
  return () => {
    clearTimeout(timer);
    if (!finished && elapsed() >= SLOW_MS) report(after);
    finished = true;
  };
}

const SLOW_MS = 1_000;
const REPORT_AGAIN_MS = 30_000;

/** How the tables of a database stand to this version: the names of migrations in the order they run. */
export async function migrationState(db: Pick<Queries, 'select'>): Promise<MigrationState> {
  const [table] = await db.select(`select to_regclass('migrations') is not null as there`);
  const rows = table?.there === true ? await db.select('select name from migrations order by id') : [];
  const done = rows.map(({ name }) => String(name));
  const known: string[] = migrations.map(({ name }) => name);
  return {
    isNew: done.length === 0,
    pending: known.filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !known.includes(name)),
  };
}

/**
 * Refuses tables that a newer version has changed: this one could lose what it does not know.
 *
 * @throws StartError
 */
export function refuseNewerTables({ unknown }: MigrationState): void {
  if (unknown.length === 0) return;
  throw new StartError(
    `The database is of a newer version: this one does not know its ${named(unknown)}. ` +
      'Start the version that the database was last used with, or a newer one.',
  );
}

/**
 * Refuses tables that this version has to change first, where it may not do so by itself.
 *
 * @throws StartError that says what to run.
 */
export function refusePending({ isNew, pending }: MigrationState): void {
  if (pending.length === 0) return;
  const lack = isNew ? 'The database has no tables yet' : `The database lacks the ${named(pending)}`;
  throw new StartError(`${lack}, and MIGRATE=off: run npm run cli -- admin migrate with this version first.`);
}

function named(names: string[]): string {
  return `${names.length === 1 ? 'migration' : 'migrations'} ${names.join(', ')}`;
}

export type MigrationState = {
  /** Whether it has no tables yet. */
  isNew: boolean;
  /** What this version has to run first. */
  pending: string[];
  /** What a newer version has run. */
  unknown: string[];
};
