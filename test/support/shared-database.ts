import { afterAll } from 'vitest';
import { type EngineName, emptyTables, openTestDatabase, type TestDatabase } from './database.ts';

/**
 * An empty, migrated database until the scope of `await using` is left, for tests that change its rows
 * alone. The file's next test gets the same one, emptied: opening one costs a second, and this does not.
 */
export async function borrowDatabase(engine: EngineName): Promise<TestDatabase> {
  const database = idle[engine].pop() ?? (await openTestDatabase(engine));
  return {
    ...database,
    async [Symbol.asyncDispose]() {
      await emptyTables(database);
      idle[engine].push(database);
    },
  };
}

const idle: Record<EngineName, TestDatabase[]> = { pglite: [], postgres: [] };

// Hooks run in reverse order, so this one comes after those of the file that imports it.
afterAll(async () => {
  for (const database of Object.values(idle).flat()) await database[Symbol.asyncDispose]();
});
