import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { migrations } from '../../src/store/migrations/index.ts';

/** Reads the fixture of a migration; undefined if there is none. */
export function readFixture(migration: string): Fixture | undefined {
  const file = fileOf(migration);
  if (!existsSync(file)) return undefined;
  const rows = readFileSync(file, 'utf8');
  const [, head = ''] = /^-- (\{.*\})$/m.exec(rows) ?? [];
  return { ...(JSON.parse(head) as Head), rows };
}

/** Writes a fixture that `readFixture` reads and `psql` runs. */
export function writeFixture({ rows, ...head }: Fixture): void {
  const about = `-- The rows of a database whose last migration is ${head.migration}, made by npm run fixture.`;
  writeFileSync(fileOf(head.migration), `${about}\n-- ${JSON.stringify(head)}\n\n${rows}`);
}

/**
 * Reads what versions ask of the database while they serve, each statement with the last migration of the newest one.
 */
export function readStatements(): Statement[] {
  if (!existsSync(STATEMENTS)) return [];
  const lines = readFileSync(STATEMENTS, 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const [migration = '', sql = ''] = line.split('\t');
    return { migration, sql };
  });
}

/** Adds the statements of a version. Of those that differ in values alone, one is kept. */
export function addStatements(migration: string, given: string[]): void {
  const kept = new Map(readStatements().map((statement) => [withoutValues(statement.sql), statement]));
  for (const sql of given) {
    const known = kept.get(withoutValues(sql));
    if (known === undefined) kept.set(withoutValues(sql), { migration, sql });
    else if (placeOf(known.migration) < placeOf(migration)) known.migration = migration;
  }
  const lines = [...kept].sort(([left], [right]) => (left < right ? -1 : 1));
  writeFileSync(STATEMENTS, lines.map(([, { migration: last, sql }]) => `${last}\t${sql}\n`).join(''));
}

/** The place of a migration among those of this version. */
export function placeOf(migration: string): number {
  return migrations.findIndex(({ name }) => name === migration);
}

function withoutValues(sql: string): string {
  return sql
    .replace(/'(?:[^']|'')*'/g, '?')
    .replace(/\b\d+\b/g, '?')
    .replace(/\(\?(, \?)*\)/g, '(?)');
}

/** A digest of the columns, indexes and checks of every table, so that a migration that was edited shows. */
export async function digestOfTables(select: (sql: string) => Promise<Row[]>): Promise<string> {
  const rows = await select(
    `select line from (
       select format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
         coalesce(pg_get_expr(d.adbin, d.adrelid), '')) as line
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       where c.relkind = 'r' and c.relname <> 'migrations' and c.relnamespace = current_schema()::regnamespace
       union all
       select indexdef from pg_indexes where schemaname = current_schema() and tablename <> 'migrations'
       union all
       select format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint
       where contype = 'c' and connamespace = current_schema()::regnamespace
     ) as lines order by line collate "C"`,
  );
  const lines = rows.map(({ line }) => String(line).replaceAll('public.', ''));
  return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);
}

function fileOf(migration: string): string {
  return join(import.meta.dirname, 'fixtures', `${migration}.sql`);
}

const STATEMENTS = join(import.meta.dirname, 'fixtures/statements.txt');

/** A database as the version with this last migration left it. */
export type Fixture = Head & {
  /** SQL that inserts the rows into the tables of that time. Webhooks lead to `RECEIVER`. */
  rows: string;
};

export type Statement = { migration: string; sql: string };

type Head = {
  migration: string;
  /** When the rows were made, in ISO 8601. */
  madeAt: string;
  /** The digest of its tables. */
  digest: string;
  known: Known;
};

/** What the database has digests of only. */
export type Known = {
  /** Where a form is published that is a draft. */
  activateUrl: string;
  revokedKey: string;
  /** The session of an owner; absent before there were any. */
  ownerCookie?: string;
};

export type Row = Record<string, unknown>;

/** What stands in fixtures for the receiver of webhooks. */
export const RECEIVER = 'http://receiver.test';
/** The key, the secret of webhooks and the idempotency key of a form. */
export const KEY = 'hfs_the-key-of-every-fixture-of-an-upgrade0';
export const WEBHOOK_SECRET = 'the-secret-of-every-webhook-of-a-fixture';
export const FORM_KEY = 'the-mailed-form-of-a-fixture';
