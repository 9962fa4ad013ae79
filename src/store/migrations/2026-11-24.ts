import { fieldNumbers } from './2026-11-24-field-numbers.ts';
import type { TableChange } from './table-change.ts';

/** The changes of 24 November 2026, in the order they run. */
export const november24: TableChange[] = [
  /** Notes which key made a key, so that it ends with it. */
  {
    name: '2026-11-24-rights',
    sql: [
      `alter table "api_keys" add "created_by" text collate "C" null`,
      `create index "api_keys_by_maker" on "api_keys" ("created_by") where "created_by" is not null`,
    ],
  },
  /**
   * Keeps mailed links, so that each works once and can be voided; how often a form was handed over, which links to
   * its files name; and of owners' sessions where and when they are used.
   */
  {
    name: '2026-11-24-mailed-links',
    sql: [
      `create table "mailed_links" (
        "token_hash" text collate "C" not null,
        "purpose" text not null,
        "form_id" text collate "C" not null,
        "address" text not null,
        "browser_hash" text null,
        "created_at" timestamptz(3) not null,
        "expires_at" timestamptz(3) not null,
        "used_at" timestamptz(3) null,
        primary key ("token_hash")
      )`,
      `create index "mailed_links_by_address" on "mailed_links" ("address", "form_id")`,
      `create index "mailed_links_by_end" on "mailed_links" ("expires_at")`,
      `alter table "forms" add "owner_epoch" int not null default 0`,
      `alter table "owner_sessions" add "browser" text not null default '', add "used_at" timestamptz(3) null`,
    ],
  },
  /** Gives webhooks a template for their bodies, and sessions a callback and what a person is notified by. */
  {
    name: '2026-11-24-session-deliveries',
    sql: [
      `alter table "webhooks" add "template" json null`,
      `create unique index "webhooks_of_callbacks_unique" on "webhooks" ("project_id", "url") where form_id = 'callbacks'`,
      `create index "webhooks_of_callbacks_by_use" on "webhooks" ("created_at") where form_id = 'callbacks'`,
      `alter table "sessions" add "callback" json null, add "callback_secret" text null, add "notify" json null`,
    ],
  },
  fieldNumbers,
  /**
   * Lets a session bring questions of its own, which become a hidden form, show a context, and be declined. A
   * declined session counts as cancelled too, so that a version before takes no answers for it.
   */
  {
    name: '2026-11-24-questions',
    sql: [
      `alter table "sessions" add "context" json null, add "allow_decline" boolean not null default false,
        add "declined_at" timestamptz(3) null, add "decline_reason" text null,
        add "return_outcome" boolean not null default false`,
      `alter table "forms" add "question_checksum" text collate "C" null,
        add "question_due_at" timestamptz(3) null`,
      `create unique index "forms_question_unique" on "forms" ("project_id", "question_checksum")
        where question_checksum is not null and deleted_at is null`,
      `create index "forms_questions_due" on "forms" ("question_due_at")
        where question_checksum is not null and deleted_at is null`,
      `create index "forms_listed" on "forms" ("project_id", "id") where question_checksum is null`,
    ],
  },
  /** Lets files name forms by a key, and keeps which versions broke what their form promised. */
  {
    name: '2026-11-24-form-keys',
    sql: [
      `alter table "forms" add "key" text collate "C" null, add "managed_by" text null`,
      `create unique index "forms_key_unique" on "forms" ("project_id", "key") where "key" is not null and "deleted_at" is null`,
      `alter table "form_versions" add "breaking" boolean not null default false`,
    ],
  },
  /** Finds the events of a session, which go with it: they hold what it held. Those of a submission go with that. */
  {
    name: '2026-11-24-events-of-sessions',
    sql: [
      `create index "events_by_session" on "events" ("session_id")
        where session_id is not null and submission_id is null`,
    ],
  },
  /**
   * Lets a session name who is to answer, and a submission who has answered; and keeps the codes that respondents
   * are mailed with the links that are.
   */
  {
    name: '2026-11-24-respondents',
    sql: [
      `alter table "sessions" add "respondent" json null`,
      `alter table "submissions" add "respondent" json null, add "respondent_key" text null`,
      `create unique index "submissions_respondent_unique" on "submissions" ("form_id", "respondent_key") where "respondent_key" is not null`,
      `alter table "mailed_links" add "session_id" text collate "C" null, add "tries" int not null default 0`,
      `create index "mailed_links_by_browser" on "mailed_links" ("browser_hash", "form_id") where "browser_hash" is not null`,
    ],
  },
  /**
   * Keeps what webhooks ask for: headers of their own, which submissions they receive, and Ed25519 signatures; and
   * whether people were told that a webhook fails.
   */
  {
    name: '2026-11-24-webhook-requests',
    sql: [
      `alter table "webhooks" add "headers" text null, add "filter" json null, add "signing_key" text null,
        add "announced_failing" boolean not null default false, add "announced_by" text collate "C" null`,
    ],
  },
];
