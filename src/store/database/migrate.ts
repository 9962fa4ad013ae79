import type { IMigrator } from '@mikro-orm/core';
import type { Log } from '../../telemetry/log.ts';

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
