import type { EntitySchema } from '@mikro-orm/core';
import { columnsOf } from '../database/columns.ts';
import type { Queries, Row } from '../database/queries.ts';
import { AttemptEntity, DeliveryEntity } from '../deliveries/log.ts';
import { QueuedDeliveryEntity } from '../deliveries/queue-table.ts';
import { FormEntity } from '../forms/forms.ts';
import { VersionEntity } from '../forms/versions.ts';
import { SessionEntity } from '../sessions/session-table.ts';
import { SubmissionEntity } from '../submissions/submissions.ts';
import { UploadEntity } from '../uploads.ts';
import { WebhookEntity } from '../webhooks/webhooks.ts';

/**
 * Rows of a project in a table as lines of JSON, by the names of the columns, form by form: a call looks at up to
 * `WINDOW` rows, and at none of other projects. It goes on after the place `after`, empty at first; `next` is that of
 * the call that goes on, or null at the end.
 */
export async function exportRows(
  db: Queries,
  name: ExportName,
  { projectId, after }: { projectId: string; after: string },
): Promise<ExportedRows> {
  const table: ExportTable = exportTables[name];
  const place = after === '' ? ['', ...table.keys.map((key) => FIRST[key])] : placeOf(after);
  const rows = await db.select(linesOf(table, pageOf(table)), [projectId, ...place]);

  const found: string[] = [];
  let bytes = 0;
  for (const [index, row] of rows.entries()) {
    const lines: unknown[] = Array.isArray(row.lines) ? row.lines : [];
    for (const line of lines) {
      found.push(String(line));
      bytes += String(line).length;
    }
    const isLast = index === rows.length - 1;
    if (bytes > MAX_BYTES && !isLast) return { lines: found, next: tokenOf(table, row) };
  }
  const last = rows.length < WINDOW ? undefined : rows.at(-1);
  return { lines: found, next: last === undefined ? null : tokenOf(table, last) };
}

/** Rows of one statement: some milliseconds. */
const WINDOW = 500;

/** Far below what a process and a socket bear at once. */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * The rows after a place: those left of the form that it names, or of no form, and of the forms that follow. A deleted
 * form is not there any more, though its rows are.
 */
function pageOf({ table, rows = table, keys, keysOf, withoutForm = false }: ExportTable): string {
  const sorted = prefixed('r', keys);
  const after = keys.map((key, index) => `$${index + 3}::${TYPES[key]}`);
  if (keysOf === 'project') {
    return `select r.* from ${rows} r where r.project_id = $1 and r.deleted_at is null and $2 = ''
      and (${sorted}) > (${after.join(', ')}) order by ${sorted} limit ${WINDOW}`;
  }
  const begin = keys.map((key, index) => `case when f.id = $2 then ${after[index]} else '${FIRST[key]}' end`);
  return `select r.* from (
      select id from forms where project_id = $1 and deleted_at is null and id >= $2
      ${withoutForm ? `union all select '' where $2 = ''` : ''} order by id
    ) f cross join lateral (
      select r.* from ${rows} r
      where r.form_id = f.id ${withoutForm ? `and (f.id <> '' or r.project_id = $1)` : ''}
        and (${sorted}) > (${begin.join(', ')})
      order by ${sorted} limit ${WINDOW}
    ) r order by f.id, ${sorted} limit ${WINDOW}`;
}

/** The place of each row of a page, and the lines that belong to it: its own, or those of rows that refer to it. */
function linesOf({ table, columns, keys, keysOf, refersBy }: ExportTable, page: string): string {
  const line = `select row_to_json(r)::text from (select ${prefixed('t', columns)}) r`;
  const from =
    refersBy === undefined
      ? `from (select p.*) t`
      : `from ${table} t where t.${refersBy} = p.id order by t.id`;
  const sorted = prefixed('p', keysOf === 'project' ? keys : ['form_id', ...keys]);
  const place = [keysOf === 'project' ? `''` : 'p.form_id', ...keys.map((key) => `p.${key}`)];
  return `select ${place.map((column, index) => `${column}::text as place_${index}`).join(', ')},
      array(select (${line}) ${from}) as lines
    from (${page}) p order by ${sorted}`;
}

function tokenOf({ keys }: ExportTable, row: Row): string {
  return JSON.stringify(Array.from({ length: keys.length + 1 }, (_, index) => String(row[`place_${index}`])));
}

function placeOf(token: string): string[] {
  const place: unknown = JSON.parse(token);
  if (!Array.isArray(place)) throw new TypeError('Not a place of an export');
  return place.map(String);
}

function prefixed(alias: string, columns: readonly string[]): string {
  return columns.map((column) => `${alias}.${column}`).join(', ');
}

const FIRST = { id: '', status: '', created_at: '-infinity', number: '0' };
const TYPES = { id: 'text', status: 'text', created_at: 'timestamptz', number: 'int' };

/** By indexes: those with a first lease are in no other one. */
const queue =
  '(select * from delivery_queue where first_lease_until is null union all select * from delivery_queue where first_lease_until is not null)';
const anyDeliveries = `(select id, form_id, project_id from deliveries union all
  select id, form_id, project_id from ${queue} q)`;
/**
 * What is exported of a project: all but secrets and what the service counts, schedules and compares by. A test says of
 * each other column of these tables that it is left out.
 */
export const exportTables = {
  forms: {
    ...allBut(
      FormEntity,
      `project_id draft_secret activation_hash activation_expires_at created_from deleted_at owner_epoch ignored_names
        question_due_at`,
    ),
    keys: ['id'],
    keysOf: 'project',
  },
  versions: { ...allBut(VersionEntity, ''), keys: ['number'] },
  submissions: {
    ...allBut(SubmissionEntity, 'project_id idempotency_key respondent_key request_fingerprint'),
    keys: ['status', 'id'],
  },
  sessions: {
    ...allBut(
      SessionEntity,
      `project_id expiry_announced_at idempotency_key request_key request_fingerprint keyless_bytes callback_secret`,
    ),
    keys: ['created_at', 'id'],
  },
  webhooks: {
    ...allBut(
      WebhookEntity,
      `project_id secret next_secret next_secret_at previous_secret previous_secret_until keyless failing_since
        failures_before_success deleted_at failures_in_row open_until headers signing_key announced_failing announced_by`,
    ),
    keys: ['id'],
    keysOf: 'project',
  },
  deliveries: { ...allBut(DeliveryEntity, 'project_id attempt_id cause'), keys: ['id'], withoutForm: true },
  waiting_deliveries: {
    ...allBut(
      QueuedDeliveryEntity,
      'project_id share step first_lease_until leased_until queued_at postponed cause',
    ),
    rows: queue,
    keys: ['id'],
    withoutForm: true,
  },
  attempts: {
    ...allBut(AttemptEntity, ''),
    rows: anyDeliveries,
    keys: ['id'],
    withoutForm: true,
    refersBy: 'delivery_id',
  },
  uploads: {
    ...allBut(UploadEntity, 'project_id keyless'),
    rows: 'submissions',
    keys: ['status', 'id'],
    refersBy: 'submission_id',
  },
} as const satisfies Record<string, ExportTable>;

function allBut(entity: EntitySchema, without: string) {
  const left = new Set(without.split(/\s+/));
  return { table: entity.meta.tableName, columns: columnsOf(entity).filter((column) => !left.has(column)) };
}

/** What is exported, in the order of its files. */
export const exportNames = Object.keys(exportTables).filter(isExportName);

function isExportName(name: string): name is ExportName {
  return Object.hasOwn(exportTables, name);
}

type ExportTable = {
  table: string;
  columns: readonly string[];
  /** Where the places are: absent, the table itself; else those whose ids `refersBy` names. */
  rows?: string;
  /** What rows are sorted by within their form, as an index has them. */
  keys: readonly (keyof typeof FIRST)[];
  /** `project`: rows are sorted within the project, and a deleted one is not there any more. Absent: `form`. */
  keysOf?: 'project';
  /** Whether some belong to no form. */
  withoutForm?: boolean;
  refersBy?: string;
};

export type ExportName = keyof typeof exportTables;

export type ExportedRows = { lines: string[]; next: string | null };
