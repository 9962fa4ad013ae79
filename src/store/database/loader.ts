import DataLoader from 'dataloader';
import type { Queries } from './queries.ts';

/**
 * Makes a look-up by id that batches: the calls of one turn of the event loop become one query, since under
 * load most of what a small SELECT costs is its round trip. Nothing is cached.
 *
 * Calls of one turn for the same id get the same object, and the calls of a batch share a failure. So check
 * ids with `isId` before: a text that no database can hold would fail the whole batch.
 */
export function createLoader<Found extends { id: string }>(
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
      { cache: false, maxBatchSize: MAX_BATCH, batchScheduleFn: (load) => setImmediate(load) },
    );
    loaders.set(db, loader);
    return loader;
  };
  return (db, id) => loaderOf(db).load(id);
}

/** Rows hold up to 256 KiB of answers each. */
const MAX_BATCH = 64;
