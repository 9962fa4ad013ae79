import type { Migration } from '@mikro-orm/migrations';
import { migrations } from '../../src/store/migrations/index.ts';

/**
 * Makes the empty tables as they are after a migration, or after none, in a database that has others, with what
 * `migrate` needs to go on from there. `run` runs one statement.
 */
export async function makeEarlierTables(run: Run, after: string | undefined): Promise<void> {
  const tables = await run(
    `select coalesce(string_agg(format('%I', tablename), ', '), '') as names from pg_tables
     where schemaname = current_schema() and tablename <> 'migrations'`,
  );
  const names = String(tables[0]?.names);
  if (names !== '') await run(`drop table ${names} cascade`);
  const count = migrations.findIndex(({ name }) => name === after) + 1;
  for (const { class: migration } of migrations.slice(0, count)) {
    const statements: string[] = [];
    const addSql = (sql: string) => statements.push(sql);
    await Object.assign(Object.create(migration.prototype) as Migration, { addSql, execute: run }).up();
    for (const statement of statements) await run(statement);
  }
  const later = migrations.slice(count).map(({ name }) => name);
  await run('delete from migrations where name = any($1)', [later]);
}

type Run = (sql: string, params?: unknown[]) => Promise<Record<string, unknown>[]>;
