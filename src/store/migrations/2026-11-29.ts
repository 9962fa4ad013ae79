import type { TableChange } from './table-change.ts';

/** The changes of 29 November 2026, in the order they run. */
export const november29: TableChange[] = [
  /** Lets people correct what they have sent. */
  {
    name: '2026-11-29-corrections',
    sql: [
      `alter table "submissions" add column "replaces" text collate "C" null, add column "replaced_by" text collate "C" null,
         drop constraint "submissions_status_check", add constraint "submissions_status_check" check ("status" in ('accepted', 'spam', 'replaced'))`,
    ],
  },
  /** Keeps the step of a draft. */
  {
    name: '2026-11-29-steps',
    sql: [`alter table "sessions" add column "step" int null`],
  },
  /** Says by a code why a delivery waits or was given up. */
  {
    name: '2026-11-29-causes',
    sql: ['delivery_queue', 'deliveries'].map(
      (table) => `alter table "${table}" add column "cause" text null`,
    ),
  },
];
