import type { TableChange } from './table-change.ts';

/** The changes of 25 November 2026, in the order they run. */
export const november25: TableChange[] = [
  /** Finds whether an address has confirmed, which is asked before each email about a question. */
  {
    name: '2026-11-25-confirmed-addresses',
    sql: [
      `create index "mail_recipients_by_address" on "mail_recipients" ("address") where "confirmed_at" is not null`,
    ],
  },
];
