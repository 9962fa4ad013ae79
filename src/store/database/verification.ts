import type { Database } from './database.ts';

/**
 * Reads every row of every table, so that what a damaged disk or archive has changed is found: the embedded
 * database has checksums, those of servers may. Returns the number of rows by table.
 *
 * Reads in steps of some megabytes; `onStep` is called after each with the table and its bytes read so far.
 */
export async function readEveryRow(
  database: Pick<Database, 'select'>,
  onStep: (table: string, bytes: number) => void,
): Promise<Map<string, number>> {
  const tables = await database.select(
    `select tablename as name, ceil(pg_relation_size(format('%I.%I', schemaname, tablename)::regclass) / 8192.0) as pages
     from pg_tables where schemaname = current_schema() order by tablename`,
  );
  const counts = new Map<string, number>();
  for (const { name, pages } of tables) {
    const table = String(name);
    counts.set(table, 0);
    for (let page = 0; page < Number(pages); page += STEP_PAGES) {
      // Writing a row as text reads its long values, too.
      const [row] = await database.select(
        `select count(*) as count, sum(length(t::text)) from "${table}" t
         where ctid >= '(${page},0)'::tid and ctid < '(${page + STEP_PAGES},0)'::tid`,
      );
      counts.set(table, (counts.get(table) ?? 0) + Number(row?.count));
      onStep(table, Math.min(page + STEP_PAGES, Number(pages)) * PAGE_BYTES);
    }
  }
  return counts;
}

const PAGE_BYTES = 8192;
const STEP_PAGES = 1024;
