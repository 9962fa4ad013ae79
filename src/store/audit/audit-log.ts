import { type ChainedEntry, firstHashOf, hashOf, type NewEntry } from '../../domain/audit/entry.ts';
import { textOrNull, timeOf } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';
import { type Chain, entryColumns, toChain, toEntry, toRow } from './audit-table.ts';

/**
 * Puts entries at the ends of the chains of their projects, which stay locked until the transaction ends: to be
 * called last in it.
 */
export async function appendEntries(tx: Transaction, entries: readonly NewEntry[]): Promise<void> {
  const byProject = Map.groupBy(entries, ({ projectId }) => projectId);
  // In one order, so that no two transactions wait for each other.
  for (const projectId of [...byProject.keys()].sort()) {
    const [end] = await tx.execute(
      `insert into audit_chains (project_id, hash, cut_hash) values ($1, $2, $2)
       on conflict (project_id) do update set project_id = excluded.project_id returning sequence, hash`,
      [projectId, firstHashOf(projectId)],
    );
    const chained = chainOf(byProject.get(projectId) ?? [], {
      sequence: Number(end?.sequence),
      hash: String(end?.hash),
    });
    const last = chained.at(-1);
    await tx.execute(
      `with added as (
         insert into audit_entries (${entryColumns})
         select ${entryColumns} from json_to_recordset($1::json) as r(project_id text, sequence bigint,
           created_at timestamptz, actor text, action text, resource text, form_id text, detail text, count int,
           client_address text, request_id text, previous_hash text, hash text)
       )
       update audit_chains set sequence = $3, hash = $4 where project_id = $2`,
      [JSON.stringify(chained.map(toRow)), projectId, last?.sequence, last?.hash],
    );
  }
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
): Promise<{ items: ChainedEntry[]; next: EntryPlace | null }> {
  const place = cursor ?? { createdAt: filter.before?.toISOString() ?? 'infinity', sequence: 0 };
  const range = [projectId, filter.after?.toISOString() ?? '-infinity', place.createdAt, place.sequence];
  const rows = await db.select(
    `select ${entryColumns} from (${scannedRows}) scanned
     where ($5::text is null or actor = $5) and ($6::text is null or action = $6 or starts_with(action, $7))
       and ($8::text is null or resource = $8 or form_id = $8)
     order by created_at desc, sequence desc limit $9`,
    [...range, filter.actor, filter.action, kindIn(filter.action), filter.resource, limit + 1],
  );
  const items = rows.slice(0, limit).map(toEntry);
  if (rows.length > limit) return { items, next: placeOf(items.at(-1)) };
  const [end] = await db.select(
    `select created_at, sequence from (${scannedRows}) scanned
     order by created_at desc, sequence desc offset ${SCANNED - 1}`,
    range,
  );
  const next = end && { createdAt: timeOf(end.created_at).toISOString(), sequence: Number(end.sequence) };
  return { items, next: next ?? null };
}

/** Entries of a project in the order of its chain, from the one after `after` on. */
export async function readChain(
  db: Queries,
  projectId: string,
  { after, limit }: { after: number; limit: number },
): Promise<ChainedEntry[]> {
  const rows = await db.select(
    `select ${entryColumns} from audit_entries where project_id = $1 and sequence > $2 order by sequence limit $3`,
    [projectId, after, limit],
  );
  return rows.map(toEntry);
}

/** The ends of a chain; null if nothing was ever recorded there. */
export async function findChain(db: Queries, projectId: string): Promise<Chain | null> {
  const [row] = await db.select(
    'select project_id, sequence, hash, cut_sequence, cut_hash from audit_chains where project_id = $1',
    [projectId],
  );
  return row === undefined ? null : toChain(row);
}

/** The chain that follows the one of `after` in the order of their projects, also if only entries of it are left. */
export async function findNextChain(db: Queries, after: string | null): Promise<string | null> {
  const [row] = await db.select(
    `select least((select min(project_id) from audit_chains where $1::text is null or project_id > $1),
       (select min(project_id) from audit_entries where $1::text is null or project_id > $1)) as next`,
    [after],
  );
  return textOrNull(row?.next);
}

/**
 * Removes up to `limit` entries of each of up to `limit` chains that are older than `before`, from the first on, and
 * keeps the place and the hash of the last one of them, so that the rest can be checked. Returns how many it removed.
 */
export async function removeEntriesBefore(db: Queries, before: Date, limit: number): Promise<number> {
  const rows = await db.execute(
    `with chains as (
         select project_id, cut_sequence from audit_chains c where exists (
           select from audit_entries
           where project_id = c.project_id and sequence = c.cut_sequence + 1 and created_at < $1
         )
         order by project_id limit $2 for update skip locked
       ),
       old as (
         select e.project_id, e.sequence, e.hash, bool_and(e.created_at < $1)
           over (partition by e.project_id order by e.sequence) as is_old
         from chains c cross join lateral (
           select * from audit_entries where project_id = c.project_id and sequence > c.cut_sequence
           order by sequence limit $2
         ) e
       ),
       removed as (
         delete from audit_entries e using old
         where is_old and e.project_id = old.project_id and e.sequence = old.sequence
         returning e.project_id, e.sequence, e.hash
       ),
       cut as (
         update audit_chains c set cut_sequence = last.sequence, cut_hash = last.hash
         from (select distinct on (project_id) * from removed order by project_id, sequence desc) last
         where last.project_id = c.project_id
       )
     select count(*) as count from removed`,
    [before.toISOString(), limit],
  );
  return Number(rows[0]?.count);
}

/** A page looks at no more rows: some ten milliseconds. */
const SCANNED = 5_000;

const scannedRows = `select * from audit_entries
  where project_id = $1 and created_at >= $2::timestamptz and (created_at, sequence) < ($3::timestamptz, $4::bigint)
  order by created_at desc, sequence desc limit ${SCANNED}`;

/** What all actions of a kind begin with, if a filter is for a kind. */
function kindIn(action: string | undefined): string | undefined {
  return action?.endsWith('.') === true ? action : undefined;
}

function chainOf(entries: readonly NewEntry[], end: { sequence: number; hash: string }): ChainedEntry[] {
  const chained: ChainedEntry[] = [];
  for (const entry of entries) {
    const before = chained.at(-1) ?? end;
    const next = { ...entry, sequence: before.sequence + 1, previousHash: before.hash };
    chained.push({ ...next, hash: hashOf(next) });
  }
  return chained;
}

function placeOf(entry: ChainedEntry | undefined): EntryPlace | null {
  return entry === undefined ? null : { createdAt: entry.createdAt.toISOString(), sequence: entry.sequence };
}

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
export type EntryPlace = { createdAt: string; sequence: number };
