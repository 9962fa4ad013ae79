import type { TableChange } from './table-change.ts';

/** The changes of 28 November 2026, in the order they run. */
export const november28: TableChange[] = [
  /** Lets a caller's request open one session, whatever it asks. */
  {
    name: '2026-11-28-session-requests',
    sql: [
      `alter table "sessions" add column "request_key" text null`,
      `create unique index "sessions_request_unique" on "sessions" ("request_key") where request_key is not null`,
    ],
  },
  /** Tells owners which inputs of their sites no field takes. */
  {
    name: '2026-11-28-ignored-names',
    sql: [`alter table "forms" add column "ignored_names" json null`],
  },
];
