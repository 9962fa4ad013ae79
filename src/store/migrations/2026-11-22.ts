import type { TableChange } from './table-change.ts';

/** The changes of 22 November 2026, in the order they run. */
export const november22: TableChange[] = [
  /** Sessions can be cancelled, send the person back to where they came from, and are listed by form. */
  {
    name: '2026-11-22-cancelled-sessions',
    sql: [
      `alter table "sessions" add column "return_url" text null, add column "cancelled_at" timestamptz(3) null`,
      `create index "sessions_by_age" on "sessions" ("form_id", "created_at", "id")`,
    ],
  },
  /** Mails are counted by delivery, and against the network that a form was made from; counts last a day. */
  {
    name: '2026-11-22-mail-allowances',
    runsBeside: '2026-11-22-mail-allowances',
    sql: [
      `alter table "forms" add column "created_from" text null`,
      `create table "mail_allowances" (
        "holder" text not null,
        "kind" text not null,
        "day" text not null,
        "delivery_ids" text[] not null,
        primary key ("holder", "kind", "day")
      )`,
      `create index "mail_allowances_by_day" on "mail_allowances" ("day")`,
      `drop table "mail_quotas"`,
    ],
  },
  /**
   * Splits what is pending from what is finished: a narrow queue, and a log whose rows never change. Events
   * that wait get the deliveries to webhooks that are made with each event from now on; their mails are made
   * afterwards, as before.
   */
  {
    name: '2026-11-22-delivery-queue',
    runsBeside: '2026-11-22-delivery-queue',
    sql: [
      `create table "delivery_queue" (
        "id" text collate "C" not null,
        "project_id" text collate "C" not null,
        "form_id" text collate "C" not null,
        "event_id" text collate "C" null,
        "webhook_id" text collate "C" null,
        "share" text collate "C" not null,
        "channel" text not null,
        "kind" text not null,
        "receiver" text collate "C" not null,
        "url" text null,
        "mail" json null,
        "attempt_count" int not null default 0,
        "step" int not null default 0,
        "due_at" timestamptz(3) not null,
        "first_lease_until" timestamptz(3) null,
        "leased_until" timestamptz(3) null,
        "created_at" timestamptz(3) not null,
        "queued_at" timestamptz(3) not null,
        "last_attempt_at" timestamptz(3) null,
        "response_status" int null,
        "error" text null,
        primary key ("id")
      )`,
      // Room beside each row for its claimed version, so that a claim writes no index.
      `alter table "delivery_queue" set (fillfactor = 50)`,
      `insert into "delivery_queue" (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
         mail, attempt_count, step, due_at, leased_until, created_at, queued_at, last_attempt_at, response_status, error)
       select d.id, d.project_id, d.form_id, d.event_id, d.webhook_id,
         d.project_id || case when coalesce(w.keyless, f.created_by = 'public', false) then ' keyless' else '' end,
         d.channel, d.kind, d.receiver, d.url, d.mail, d.attempt_count, d.step, coalesce(d.due_at, now()), d.leased_until,
         d.created_at, d.created_at, d.last_attempt_at, d.response_status, d.error
       from "deliveries" d left join "webhooks" w on w.id = d.webhook_id left join "forms" f on f.id = d.form_id
       where d.status = 'pending'`,
      `insert into "delivery_queue" (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
         due_at, created_at, queued_at)
       select 'dlv_' || substr(e.id, 5, 10) || right(replace(gen_random_uuid()::text, '-', ''), 16), e.project_id,
         e.form_id, e.id, w.id, e.project_id || case when w.keyless then ' keyless' else '' end, 'webhook', e.type, w.id,
         w.url, now(), e.created_at, e.created_at
       from "events" e join "webhooks" w on w.form_id = e.form_id or (w.form_id is null and w.project_id = e.project_id)
       where e.fanned_out_at is null and e.form_id <> 'form_demo' and w.active and w.deleted_at is null
         and case e.type when 'submission.completed' then 'submission.created' else e.type end = any(w.events)`,
      `delete from "deliveries" where "status" = 'pending'`,
      `drop index "deliveries_due", "deliveries_due_by_receiver", "deliveries_by_submission", "deliveries_finished"`,
      `alter table "deliveries" drop constraint "deliveries_status_check"`,
      `alter table "deliveries" drop column "submission_id", drop column "mail", drop column "step", drop column "due_at",
         drop column "leased_until", add column "attempt_id" text collate "C" null, add column "duration_ms" int null,
         add column "response_body" text null`,
      `alter table "deliveries" alter column "attempt_count" drop default`,
      `alter table "deliveries" reset (fillfactor)`,
      `alter table "deliveries" add constraint "deliveries_status_check" check ("status" in ('delivered', 'failed'))`,
      `create index "deliveries_failed" on "deliveries" ("webhook_id", "id")
         where status = 'failed' and webhook_id is not null`,
      `create index "deliveries_failed_by_form" on "deliveries" ("form_id", "id") where status = 'failed'`,
      `alter table "delivery_queue" add constraint "delivery_queue_channel_check" check ("channel" in ('webhook', 'mail'))`,
      `create index "delivery_queue_due" on "delivery_queue" ("due_at") where first_lease_until is null`,
      `create index "delivery_queue_by_receiver" on "delivery_queue" ("share", "receiver", "due_at")
         where first_lease_until is null`,
      `create index "delivery_queue_by_webhook" on "delivery_queue" ("webhook_id", "id")
         where first_lease_until is null and webhook_id is not null`,
      `create index "delivery_queue_by_form" on "delivery_queue" ("form_id", "id") where first_lease_until is null`,
      `create index "delivery_queue_by_event" on "delivery_queue" ("event_id")
         where first_lease_until is null and event_id is not null`,
      `create index "delivery_queue_first_leases" on "delivery_queue" ("first_lease_until")
         where first_lease_until is not null`,
      `drop index "events_fanned_out"`,
    ],
  },
  /** Counts the bytes of what came without a key by form, so that a project holds no more of it than it may. */
  {
    name: '2026-11-22-keyless-storage',
    sql: [
      `alter table "form_counters" add column "project_id" text collate "C" null`,
      `alter table "form_counters" add column "keyless_bytes" bigint not null default '0'`,
      `create index "form_counters_keyless" on "form_counters" ("project_id") where keyless_bytes <> 0`,
      `alter table "uploads" add column "keyless" boolean not null default false`,
      // Submissions that are there: they are subtracted when they are removed.
      `insert into form_counters (form_id, slot, project_id, keyless_bytes)
        select s.form_id, 0, s.project_id,
          sum(2 * (octet_length(s.answers::text) + octet_length(s.metadata::text)) + 1024)
        from submissions s join forms f on f.id = s.form_id
        where f.created_by = 'public' group by s.form_id, s.project_id
        on conflict (form_id, slot) do update
          set project_id = excluded.project_id, keyless_bytes = excluded.keyless_bytes`,
    ],
  },
  /** What requests with an idempotency key made, and what their replies show once. */
  {
    name: '2026-11-22-idempotency-keys',
    sql: [
      `create table "idempotency_keys" (
        "id" text collate "C" not null,
        "request_fingerprint" text not null,
        "made_id" text collate "C" not null,
        "secret" text null,
        "created_at" timestamptz(3) not null,
        primary key ("id")
      )`,
      `create index "idempotency_keys_by_age" on "idempotency_keys" ("created_at")`,
    ],
  },
  /** Records where answers come from. Of answers that are there it is not known. */
  {
    name: '2026-11-22-provenance',
    sql: [
      `alter table "submissions" add column "provenance" json null`,
      `alter table "sessions" add column "provenance" json null`,
    ],
  },
  /** Lets the deliveries of a webhook that keeps failing wait together. */
  {
    name: '2026-11-22-circuit-breaker',
    sql: [
      `alter table "webhooks" add column "failures_in_row" int not null default 0,
        add column "open_until" timestamptz(3) null`,
      `alter table "delivery_queue" add column "postponed" boolean not null default false`,
    ],
  },
  /** A revoked key leaves its hash, so that no start registers it again. */
  {
    name: '2026-11-22-revoked-keys',
    sql: [
      `create table "revoked_keys" (
        "secret_hash" text not null,
        "revoked_at" timestamptz(3) not null,
        primary key ("secret_hash")
      )`,
    ],
  },
  /**
   * Visitors of a form's own page have sessions, too, which count as stored without a key and are removed after
   * their end.
   */
  {
    name: '2026-11-22-visitors-sessions',
    sql: [
      `alter table "sessions" add column "keyless_bytes" int null`,
      `create index "sessions_of_visitors" on "sessions" ("expires_at") where keyless_bytes is not null`,
    ],
  },
  /** Owners of forms sign in by mail and find their forms by their address. */
  {
    name: '2026-11-22-owner-sessions',
    sql: [
      `create table "owner_sessions" (
        "token_hash" text collate "C" not null,
        "address" text not null,
        "created_at" timestamptz(3) not null,
        "expires_at" timestamptz(3) not null,
        primary key ("token_hash")
      )`,
      `create index "owner_sessions_by_address" on "owner_sessions" ("address")`,
      `create index "owner_sessions_by_end" on "owner_sessions" ("expires_at")`,
      `create table "used_sign_in_links" (
        "token_hash" text collate "C" not null,
        "expires_at" timestamptz(3) not null,
        primary key ("token_hash")
      )`,
      `create index "used_sign_in_links_by_end" on "used_sign_in_links" ("expires_at")`,
      `create index "forms_by_owner" on "forms" (lower("owner_email"), "id")`,
    ],
  },
  /** Lets a delivery go on with the trace of the request that caused it, and send it to its receiver. */
  {
    name: '2026-11-22-traces',
    sql: [
      `alter table "events" add column "traceparent" text null`,
      `alter table "webhooks" add column "sends_traceparent" boolean not null default false`,
    ],
  },
  /** Owners close forms and open them again. */
  {
    name: '2026-11-22-closed-forms',
    sql: [`alter table "forms" add column "closed_at" timestamptz(3) null`],
  },
  /** Owners add recipients of their own beside those that a form's definition names. */
  {
    name: '2026-11-22-added-recipients',
    sql: [`alter table "mail_recipients" add column "added_as" text null`],
  },
  /** Who did what: a chain of entries for each project. */
  {
    name: '2026-11-22-audit-log',
    sql: [
      `create table "audit_chains" (
        "project_id" text collate "C" not null,
        "sequence" bigint not null default '0',
        "hash" text not null,
        "cut_sequence" bigint not null default '0',
        "cut_hash" text not null,
        primary key ("project_id")
      )`,
      `create table "audit_entries" (
        "project_id" text collate "C" not null,
        "sequence" bigint not null,
        "created_at" timestamptz(3) not null,
        "actor" text not null,
        "action" text not null,
        "resource" text null,
        "form_id" text collate "C" null,
        "detail" text null,
        "count" int not null,
        "client_address" text null,
        "request_id" text null,
        "previous_hash" text not null,
        "hash" text not null,
        primary key ("project_id", "sequence")
      )`,
      `create index "audit_entries_by_time" on "audit_entries" ("project_id", "created_at", "sequence")`,
    ],
  },
];
