import type { Queries } from '../database/queries.ts';

/**
 * Rows of a project in a table as lines of JSON, by the names of the columns. A call looks at up to `WINDOW` rows of
 * all projects from the one after `after` on, so that none takes long. `next` is the last that was looked at; null
 * at the end. Without `lines` they are only counted, more at a time.
 */
export async function exportRows(
  db: Queries,
  name: ExportName,
  { projectId, after, lines: isWanted }: { projectId: string; after: string; lines: boolean },
): Promise<ExportedRows> {
  const { table, columns, own } = exportTables[name];
  const window = isWanted ? WINDOW : COUNTED;
  const line = isWanted ? `(select row_to_json(r)::text from (select ${prefixed(columns)}) r)` : `''`;
  const rows = await db.select(
    `select t.id, ${own} as own, case when ${own} then ${line} end as line
     from (select * from ${table} where id > $2 order by id limit ${window}) t order by t.id`,
    [projectId, after],
  );
  const found: string[] = [];
  let bytes = 0;
  let count = 0;
  let next: string | null = null;
  for (const row of rows) {
    if (bytes > MAX_BYTES) return { lines: found, count, next };
    next = String(row.id);
    if (row.own !== true) continue;
    count += 1;
    if (!isWanted) continue;
    const text = String(row.line);
    bytes += text.length;
    found.push(text);
  }
  return { lines: found, count, next: rows.length < window ? null : next };
}

/** Rows of one statement: some milliseconds. */
const WINDOW = 500;

/** The same without their columns. */
const COUNTED = 5_000;

/** Far below what a process and a socket bear at once. */
const MAX_BYTES = 8 * 1024 * 1024;

function prefixed(columns: string): string {
  return columns
    .split(/\s+/)
    .map((column) => `t.${column}`)
    .join(', ');
}

/** A deleted form is not there any more, though its rows are removed a little later. */
const ofForm = `(t.form_id = '' or exists (select from forms f where f.id = t.form_id and f.deleted_at is null))`;
const ofProject = `t.project_id = $1 and ${ofForm}`;
const delivery = `id form_id event_id webhook_id channel kind receiver url attempt_count created_at last_attempt_at
  response_status error`;

/**
 * What is exported of a project: all but secrets and what the service counts, schedules and compares by. A test holds
 * the columns against the tables.
 */
export const exportTables = {
  forms: {
    table: 'forms',
    columns: `id name slug status created_by draft_definition current_version_id activated_at owner_email
      owner_confirmed_at pending_owner_email retention_days closed_at archived_at created_at updated_at`,
    omitted: 'project_id draft_secret activation_hash activation_expires_at created_from deleted_at',
    own: 't.project_id = $1 and t.deleted_at is null',
  },
  versions: {
    table: 'form_versions',
    columns: 'id form_id number definition checksum created_at',
    omitted: '',
    own: 'exists (select from forms f where f.id = t.form_id and f.project_id = $1 and f.deleted_at is null)',
  },
  submissions: {
    table: 'submissions',
    columns: 'id form_id version_id session_id source status answers metadata provenance created_at',
    omitted: 'project_id idempotency_key request_fingerprint',
    own: ofProject,
  },
  sessions: {
    table: 'sessions',
    columns: `id form_id version_id prefill metadata partial_answers provenance return_url created_at expires_at
      opened_at submitted_at cancelled_at submission_id`,
    omitted: 'project_id expiry_announced_at idempotency_key request_fingerprint keyless_bytes',
    own: ofProject,
  },
  webhooks: {
    table: 'webhooks',
    columns: `id form_id url events from_definition sends_traceparent active disabled_at disabled_reason
      last_success_at created_at`,
    omitted: `project_id secret next_secret next_secret_at previous_secret previous_secret_until keyless failing_since
      failures_before_success deleted_at failures_in_row open_until`,
    own: 't.project_id = $1 and t.deleted_at is null',
  },
  deliveries: {
    table: 'deliveries',
    columns: `${delivery} status delivered_at duration_ms response_body`,
    omitted: 'project_id attempt_id',
    own: ofProject,
  },
  waiting_deliveries: {
    table: 'delivery_queue',
    columns: `${delivery} due_at mail`,
    omitted: 'project_id share step first_lease_until leased_until queued_at postponed',
    own: ofProject,
  },
  attempts: {
    table: 'attempts',
    columns: 'id delivery_id number status response_status error response_body duration_ms started_at',
    omitted: '',
    own: `(exists (select from deliveries d where d.id = t.delivery_id and d.project_id = $1)
      or exists (select from delivery_queue q where q.id = t.delivery_id and q.project_id = $1))`,
  },
  uploads: {
    table: 'uploads',
    columns: 'id form_id field_id submission_id filename content_type size sha256 created_at',
    omitted: 'project_id keyless',
    own: `${ofProject} and t.submission_id is not null`,
  },
} as const;

/** What is exported, in the order of its files. */
export const exportNames = Object.keys(exportTables).filter(isExportName);

function isExportName(name: string): name is ExportName {
  return Object.hasOwn(exportTables, name);
}

export type ExportName = keyof typeof exportTables;

export type ExportedRows = { lines: string[]; count: number; next: string | null };
