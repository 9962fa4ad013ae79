import type { SecretBox } from '../domain/secrets/secret-key.ts';
import { sealedColumnsOf, textOrNull } from './database/columns.ts';
import type { Queries, Row } from './database/queries.ts';
import { FormEntity } from './forms/forms.ts';
import { IdempotencyKeyEntity } from './idempotency-keys.ts';
import { findFact, InstallationEntity, SECRET_KEY_CHECK } from './installation.ts';
import { SessionEntity } from './sessions/session-table.ts';
import { WebhookEntity } from './webhooks/webhooks.ts';

/** The columns that hold sealed secrets, by table. */
const sealedColumns = new Map(
  [WebhookEntity, FormEntity, IdempotencyKeyEntity, SessionEntity].map((entity) => [
    entity.meta.tableName,
    sealedColumnsOf(entity),
  ]),
);

/** The tables that hold sealed secrets. */
export const sealedTables = [...sealedColumns.keys()];

/**
 * Seals anew, under the current key of `box`, what is sealed under another among the next `limit` rows of a table
 * after the id `after`. Called in a transaction. Any number of processes may do so at once:
 * what one has sealed, the others skip.
 *
 * A group is bounded in bytes by its count: what is sealed has a few thousand characters at most, but a reply that is
 * kept may have some hundred KiB, so that there are few of them in a group.
 */
export async function resealGroup(
  tx: Queries,
  box: SecretBox,
  { table, after, limit }: { table: string; after: string; limit: number },
): Promise<ResealedGroup> {
  const most = table === 'idempotency_keys' ? Math.min(limit, MAX_REPLIES) : limit;
  const ids = await tx.select(`select id from ${table} where id > $1 order by id limit $2`, [after, most]);
  const last = ids.at(-1)?.id;
  if (last === undefined) return { next: null, resealed: 0, unreadable: 0 };
  const columns = sealedColumns.get(table) ?? [];
  // A row that stands for an origin of callbacks has an empty one.
  const isOld = columns.map((column) => `${column} <> '' and not starts_with(${column}, $3)`).join(' or ');
  const rows = await tx.select(
    `select id, ${columns.join()} from ${table} where id > $1 and id <= $2 and (${isOld})
     order by id for update`,
    [after, last, box.prefix],
  );
  let unreadable = 0;
  const seal = (value: unknown) => {
    if (typeof value !== 'string' || value === '' || value.startsWith(box.prefix)) return value;
    try {
      return box.seal(box.open(value));
    } catch {
      unreadable += 1;
      return value;
    }
  };
  const sealed = rows.map(
    (row): Row => ({
      id: row.id,
      ...Object.fromEntries(columns.map((column) => [column, seal(row[column])])),
    }),
  );
  await tx.execute(
    `update ${table} t set ${columns.map((column) => `${column} = r.${column}`).join()}
     from json_to_recordset($1::json) as r(id text, ${columns.map((column) => `${column} text`).join()})
     where t.id = r.id`,
    [JSON.stringify(sealed)],
  );
  return { next: textOrNull(last), resealed: rows.length, unreadable };
}

/** Seals anew what starts check their key against, so that they ask for the current key from then on. */
export async function resealKeyCheck(db: Queries, box: SecretBox): Promise<void> {
  const value = await findFact(db, SECRET_KEY_CHECK);
  if (value === undefined || value.startsWith(box.prefix)) return;
  const check = { name: SECRET_KEY_CHECK, value };
  await db.write((em) => em.nativeUpdate(InstallationEntity, check, { value: box.seal(box.open(value)) }));
}

/** Of kept replies in a group: some MiB. */
const MAX_REPLIES = 10;

export type ResealedGroup = {
  /** The id that the next group begins after; null at the end of the table. */
  next: string | null;
  /** How many rows had a secret under another key. */
  resealed: number;
  /** How many secrets no key opens. They stay as they are. */
  unreadable: number;
};
