import { firstTables } from './2026-11-21-first-tables.ts';
import type { TableChange } from './table-change.ts';

/** The changes of 21 November 2026, in the order they run. */
export const november21: TableChange[] = [
  firstTables,
  /**
   * Leaves room beside each delivery for its claimed version: PostgreSQL then writes it next to the first and
   * touches none of the table's indexes.
   */
  {
    name: '2026-11-21-claims-beside-indexes',
    sql: [`alter table "deliveries" set (fillfactor = 50)`],
  },
  /** Forms can be deleted; what belongs to them is removed in the background and found by these indexes. */
  {
    name: '2026-11-21-deleted-forms',
    sql: [
      `alter table "forms" add column "deleted_at" timestamptz(3) null`,
      `create index "forms_deleted" on "forms" ("deleted_at") where deleted_at is not null`,
      `create index "events_by_form" on "events" ("form_id") where submission_id is null`,
    ],
  },
  /** Keeps the retention time of a form's current version on the form, where an index finds the few that have one. */
  {
    name: '2026-11-21-forms-with-retention',
    sql: [
      `alter table "forms" add column "retention_days" int null`,
      `update "forms" f set "retention_days" = (v.definition->'settings'->>'retentionDays')::int
        from "form_versions" v
        where v.id = f.current_version_id and v.definition->'settings'->>'retentionDays' is not null`,
      `create index "forms_with_retention" on "forms" ("id") where retention_days is not null`,
    ],
  },
  /** Lets a form's sessions be made once for each idempotency key. */
  {
    name: '2026-11-21-session-idempotency',
    sql: [
      `alter table "sessions" add column "idempotency_key" text null, add column "request_fingerprint" text null`,
      `create unique index "sessions_idempotency_unique" on "sessions" ("form_id", "idempotency_key")
        where idempotency_key is not null`,
    ],
  },
];
