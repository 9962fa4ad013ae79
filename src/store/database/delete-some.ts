import type { Queries, Row } from './queries.ts';

/**
 * Deletes up to `limit` rows of a table, and returns their keys. Rows that another transaction holds are
 * left to it. Small groups keep locks short, so that purging stops nobody.
 */
export async function deleteSome(
  db: Queries,
  table: string,
  { where, params = [], orderBy, limit, key = 'id' }: Selection,
): Promise<Row[]> {
  return db.execute(
    `delete from ${table} where (${key}) in (
       select ${key} from ${table} where ${where} ${orderBy === undefined ? '' : `order by ${orderBy}`}
       limit $${params.length + 1} for update skip locked
     ) returning ${key}`,
    [...params, limit],
  );
}

/** `where` is a condition with `params`; `key` the columns of the primary key. */
type Selection = {
  where: string;
  params?: unknown[];
  orderBy?: string;
  limit: number;
  key?: string;
};
