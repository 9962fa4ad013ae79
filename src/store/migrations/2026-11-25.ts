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
  /** Keeps up to which submission owners have read, so that later ones are marked. What came before counts as read. */
  {
    name: '2026-11-25-read-submissions',
    sql: [
      `alter table "forms" add "read_up_to" text collate "C" null`,
      `update "forms" f set "read_up_to" = (select max(s.id) from "submissions" s where s.form_id = f.id and s.status = 'accepted')
        where f.owner_confirmed_at is not null`,
    ],
  },
];
