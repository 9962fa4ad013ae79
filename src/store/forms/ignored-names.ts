import DataLoader from 'dataloader';
import { foreignNames } from '../../domain/limits/limits.ts';
import type { Transactions } from '../database/queries.ts';

/** Makes what notes names that posts had and no field has: all of a tenth of a second in one transaction. */
export function createNameNotes(database: Transactions): NoteNames {
  const loader = new DataLoader<Note, undefined>((notes) => noteAll(database, notes), {
    cache: false,
    batchScheduleFn: (load) => setTimeout(load, 100),
  });
  return (note) => loader.load(note);
}

async function noteAll(database: Transactions, notes: readonly Note[]): Promise<undefined[]> {
  // In the order of the ids, so that no two processes wait for each other.
  const byForm = Map.groupBy(notes, ({ formId }) => formId);
  const locking = 'select ignored_names from forms where id = $1 for no key update';
  await database.transaction(async (tx) => {
    for (const id of [...byForm.keys()].sort()) {
      const [row] = await tx.select(locking, [id]);
      const noted = new Map(Object.entries((row?.ignored_names ?? {}) as IgnoredNames));
      for (const { names, lastAt } of byForm.get(id) ?? [])
        for (const name of names) {
          const own = noted.has(name) || noted.size < foreignNames.kept ? name : OTHERS;
          noted.set(own, { count: (noted.get(own)?.count ?? 0) + 1, lastAt });
        }
      const changed = JSON.stringify(Object.fromEntries(noted));
      await tx.execute('update forms set ignored_names = $2 where id = $1', [id, changed]);
    }
  });
  return notes.map(() => undefined);
}

/** In place of the names beyond those that are kept. */
const OTHERS = '';

export type NoteNames = (note: Note) => Promise<unknown>;

/** The names of one post, and when it came, in ISO 8601. */
type Note = { formId: string; names: readonly string[]; lastAt: string };

/** How often each name came, and when last; under an empty one, the same of all others together. */
export type IgnoredNames = Record<string, { count: number; lastAt: string }>;
