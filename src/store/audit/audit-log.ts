import { defineEntity, p } from '@mikro-orm/core';
import type { AuditEntry, NewEntry } from '../../domain/audit.ts';
import { id, keysWithout, rowsOf, text, time } from '../database/columns.ts';
import { deleteSome, type Queries, type Transaction } from '../database/queries.ts';

/** Written by versions before 2026-11-23-plain-audit, which chained the entries of each project by hashes. */
export const AuditChainEntity = defineEntity({
  name: 'AuditChain',
  tableName: 'audit_chains',
  properties: {
    projectId: id().primary(),
    sequence: p.bigint('number').default(0),
    hash: text(),
    cutSequence: p.bigint('number').default(0),
    cutHash: text(),
  },
});

/** Who did what. Rows are never changed; those that are too old go. */
export const AuditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entries',
  properties: {
    createdAt: time().primary(),
    /** By the order of inserts. */
    id: p.bigint('number').primary().autoincrement(),
    /** Empty: of what belongs to no project. */
    projectId: id(),
    actor: text(),
    action: text(),
    resource: text().strictNullable(),
    formId: id().strictNullable(),
    detail: text().strictNullable(),
    count: p.integer(),
    clientAddress: text().strictNullable(),
    requestId: text().strictNullable(),
    /** These three are of versions that chained entries. */
    sequence: p.bigint('number').strictNullable(),
    previousHash: text().strictNullable(),
    hash: text().strictNullable(),
  },
  indexes: [{ name: 'audit_entries_by_time', properties: ['projectId', 'createdAt', 'id'] }],
});

/** Stores entries with what they tell of. */
export async function insertEntries(tx: Transaction, entries: readonly NewEntry[]): Promise<void> {
  await tx.execute(
    `insert into audit_entries (project_id, created_at, actor, action, resource, form_id, detail, count, client_address,
       request_id)
     select * from json_to_recordset($1::json) as r("projectId" text, "createdAt" timestamptz, "actor" text,
       "action" text, "resource" text, "formId" text, "detail" text, "count" int, "clientAddress" text, "requestId" text)`,
    [JSON.stringify(entries)],
  );
}

/**
 * Lists the entries of a project, newest first. A page ends after `SCANNED` rows, however few of them fit the filter,
 * so that no filter makes a query long.
 */
export async function listEntries(
  db: Queries,
  projectId: string,
  filter: EntryFilter,
  { limit, cursor }: { limit: number; cursor?: EntryPlace | undefined },
): Promise<{ items: AuditEntry[]; next: EntryPlace | null }> {
  const place = cursor ?? { createdAt: filter.before?.toISOString() ?? 'infinity', id: 0 };
  const range = [projectId, filter.after?.toISOString() ?? '-infinity', place.createdAt, place.id];
  const kind = filter.action?.endsWith('.') ? filter.action : undefined;
  const rows = await db.select(
    `select ${entryRows.columns} from (${scannedRows}) scanned
     where ($5::text is null or actor = $5) and ($6::text is null or action = $6 or starts_with(action, $7))
       and ($8::text is null or resource = $8 or form_id = $8)
     order by created_at desc, id desc limit $9`,
    [...range, filter.actor, filter.action, kind, filter.resource, limit + 1],
  );
  const found = rows.slice(0, limit).map(entryRows.map);
  const items = found.map(({ id: _id, ...entry }) => entry);
  if (rows.length > limit) return { items, next: placeOf(found.at(-1)) };
  const [end] = await db.select(
    `select ${entryRows.columns} from (${scannedRows}) scanned order by created_at desc, id desc offset ${SCANNED - 1}`,
    range,
  );
  return { items, next: placeOf(end && entryRows.map(end)) };
}

/** Removes up to `limit` entries that are older than `before`. Returns how many it removed. */
export async function removeEntriesBefore(db: Queries, before: Date, limit: number): Promise<number> {
  const where = 'created_at < $1';
  const params = [before.toISOString()];
  const key = 'created_at, id';
  return (await deleteSome(db, 'audit_entries', { where, params, orderBy: 'created_at', limit, key })).length;
}

/** A page looks at no more rows: some ten milliseconds. */
const SCANNED = 5_000;

const scannedRows = `select * from audit_entries
  where project_id = $1 and created_at >= $2::timestamptz and (created_at, id) < ($3::timestamptz, $4::bigint)
  order by created_at desc, id desc limit ${SCANNED}`;

function placeOf(row: { createdAt: Date; id: number } | undefined): EntryPlace | null {
  return row === undefined ? null : { createdAt: row.createdAt.toISOString(), id: row.id };
}

const ofChains = ['sequence', 'previousHash', 'hash'] as const;
const entryRows = rowsOf(AuditEntryEntity, keysWithout(AuditEntryEntity, ofChains));

/** What an entry must be. An `action` that ends in `.` is all of a kind. */
export type EntryFilter = {
  actor?: string | undefined;
  action?: string | undefined;
  /** The resource, or the form. */
  resource?: string | undefined;
  after?: Date | undefined;
  before?: Date | undefined;
};

/** A place in the list; `createdAt` as ISO 8601. */
export type EntryPlace = { createdAt: string; id: number };
