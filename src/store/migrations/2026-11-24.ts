import { firstContract, nextContract } from '../../domain/contracts/contract.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
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
  /**
   * Gives the fields of published versions their numbers, those of each form in the order of its versions. A version that
   * an older release publishes beside this one has none until they are asked for: they follow from its predecessor.
   *
   * Unlike other migrations it uses the code of the domain, and no copy of it. Nobody knows a number or a name before it
   * has run, so it may give others after a change of that code. The code reads definitions of all ages in any case, since
   * published ones never change. What is stored has the shape that it has here, which the compiler compares.
   */
  {
    name: '2026-11-24-field-numbers',
    async run(execute) {
      await execute('alter table "form_versions" add "contract" json null');
      let before: Numbered | undefined;
      for (let place = `('', 0)`; ; ) {
        const rows = await execute(
          `select "form_id", "number", "definition" from "form_versions" where ("form_id", "number") > ${place}
           order by "form_id", "number" limit ${DEFINITIONS_AT_ONCE}`,
        );
        for (const row of rows) {
          const { form_id: formId, number, definition } = row as PublishedRow;
          const { name = '', fields = [] } = definition;
          const asked = { name, fields };
          const contract: StoredContract =
            before?.formId === formId ? nextContract(before, asked) : firstContract(formId, asked);
          before = { formId, definition: asked, contract };
          // Ids and names of fields have letters, digits, "_" and "-" alone.
          await execute(
            `update "form_versions" set "contract" = '${JSON.stringify(contract)}'
             where "form_id" = '${formId}' and "number" = ${number}`,
          );
          place = `('${formId}', ${number})`;
        }
        if (rows.length < DEFINITIONS_AT_ONCE) return;
      }
    },
  },
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

/** Each can have 256 KiB. */
const DEFINITIONS_AT_ONCE = 100;

type PublishedRow = { form_id: string; number: number; definition: Partial<FormDefinition> };

type Numbered = {
  formId: string;
  definition: Pick<FormDefinition, 'name' | 'fields'>;
  contract: StoredContract;
};

type StoredContract = {
  package: string;
  message: string;
  nextNumber: number;
  fields: { [fieldId: string]: { number: number; name: string } };
};
