import { StartError } from '../../domain/errors/start-error.ts';
import { migrations } from '../migrations/index.ts';
import type { Queries } from './queries.ts';

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
