import type { Queries, Row } from '../database/queries.ts';

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
  const line = `select row_to_json(r)::text from (select ${prefixed('t', columns.split(/\s+/))}) r`;
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
const delivery = `id form_id event_id webhook_id channel kind receiver url attempt_count created_at last_attempt_at
  response_status error`;

/**
 * What is exported of a project: all but secrets and what the service counts, schedules and compares by. A test says of
 * each other column of these tables that it is left out.
 */
export const exportTables = {
  forms: {
    table: 'forms',
    columns: `id name slug status created_by draft_definition current_version_id activated_at owner_email
      owner_confirmed_at pending_owner_email retention_days closed_at archived_at question_checksum key managed_by
      read_up_to created_at updated_at`,
    keys: ['id'],
    keysOf: 'project',
  },
  versions: {
    table: 'form_versions',
    columns: 'id form_id number definition checksum contract breaking created_at',
    keys: ['number'],
  },
  submissions: {
    table: 'submissions',
    columns:
      'id form_id version_id session_id source status answers metadata provenance respondent replaces replaced_by created_at',
    keys: ['status', 'id'],
  },
  sessions: {
    table: 'sessions',
    columns: `id form_id version_id prefill metadata partial_answers step provenance return_url created_at expires_at
      opened_at submitted_at cancelled_at submission_id notify callback context allow_decline declined_at decline_reason
      return_outcome respondent`,
    keys: ['created_at', 'id'],
  },
  webhooks: {
    table: 'webhooks',
    columns: `id form_id url events from_definition sends_traceparent template filter active disabled_at disabled_reason
      last_success_at created_at`,
    keys: ['id'],
    keysOf: 'project',
  },
  deliveries: {
    table: 'deliveries',
    columns: `${delivery} status delivered_at duration_ms response_body`,
    keys: ['id'],
    withoutForm: true,
  },
  waiting_deliveries: {
    table: 'delivery_queue',
    columns: `${delivery} due_at mail`,
    rows: queue,
    keys: ['id'],
    withoutForm: true,
  },
  attempts: {
    table: 'attempts',
    columns: 'id delivery_id number status response_status error response_body duration_ms started_at',
    rows: anyDeliveries,
    keys: ['id'],
    withoutForm: true,
    refersBy: 'delivery_id',
  },
  uploads: {
    table: 'uploads',
    columns: 'id form_id field_id submission_id filename content_type size sha256 created_at',
    rows: 'submissions',
    keys: ['status', 'id'],
    refersBy: 'submission_id',
  },
} as const satisfies Record<string, ExportTable>;

/** What is exported, in the order of its files. */
export const exportNames = Object.keys(exportTables).filter(isExportName);

function isExportName(name: string): name is ExportName {
  return Object.hasOwn(exportTables, name);
}

type ExportTable = {
  table: string;
  columns: string;
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
