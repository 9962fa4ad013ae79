import DataLoader from 'dataloader';
import type { Queries } from './queries.ts';

/**
 * Makes a look-up by id that asks for all its callers of one turn of the event loop at once: under load
 * most of what a small SELECT costs is its way to the database and back. Nothing is kept.
 *
 * Callers of one turn who ask for the same id get the same object, and share a failure: an id must be one
 * by its form (`isId`), since text that no database can hold would fail them all.
 */
export function gathered<Found extends { id: string }>(
  findAll: (db: Queries, ids: readonly string[]) => Promise<Found[]>,
): (db: Queries, id: string) => Promise<Found | null> {
  const loaders = new WeakMap<Queries, DataLoader<string, Found | null>>();

  const loaderOf = (db: Queries) => {
    const known = loaders.get(db);
    if (known !== undefined) return known;
    const loader = new DataLoader<string, Found | null>(
      async (ids) => {
        const found = new Map((await findAll(db, ids)).map((each) => [each.id, each]));
        return ids.map((id) => found.get(id) ?? null);
      },
      { cache: false, maxBatchSize: MOST_AT_ONCE, batchScheduleFn: (ask) => setImmediate(ask) },
    );
    loaders.set(db, loader);
    return loader;
  };
  return (db, id) => loaderOf(db).load(id);
}

/** Rows hold up to 256 KiB of answers each. */
const MOST_AT_ONCE = 64;
