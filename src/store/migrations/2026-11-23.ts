import { refusedWriters } from './2026-11-23-refused-writers.ts';
import type { TableChange } from './table-change.ts';

/** The changes of 23 November 2026, in the order they run. */
export const november23: TableChange[] = [
  /** Notes what is still to be removed of something whose rows are gone, such as the bytes of its files. */
  {
    name: '2026-11-23-removals',
    sql: [
      `create table "removals" (
        "id" text collate "C" not null,
        "kind" text not null,
        "subject" text collate "C" not null,
        "due_at" timestamptz(3) not null,
        "attempts" int not null default 0,
        "error" text null,
        primary key ("id")
      )`,
      `alter table "removals" add constraint "removals_kind_check"
        check (kind in ('file', 'form', 'project', 'webhook'))`,
      `create index "removals_due" on "removals" ("due_at")`,
    ],
  },
  refusedWriters,
  /**
   * Entries of the audit log are plain inserts: they have an `id` of their own, by which those of the same time are
   * in order, and need no place in a chain. Former versions go on chaining theirs, in the columns and the table that
   * they know. The table is written anew for the ids: some seconds for 200,000 entries, for which whoever changes
   * something waits.
   */
  {
    name: '2026-11-23-plain-audit',
    sql: [
      `alter table "audit_entries" drop constraint "audit_entries_pkey"`,
      `drop index "audit_entries_by_time"`,
      `alter table "audit_entries" add column "id" bigserial not null, alter column "sequence" drop not null,
        alter column "previous_hash" drop not null, alter column "hash" drop not null`,
      `alter table "audit_entries" add primary key ("created_at", "id")`,
      `create index "audit_entries_by_time" on "audit_entries" ("project_id", "created_at", "id")`,
    ],
  },
];
