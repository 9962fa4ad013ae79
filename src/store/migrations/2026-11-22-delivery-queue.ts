import type { TableChange } from './table-change.ts';

/**
 * Splits what is pending from what is finished: a narrow queue, and a log whose rows never change. Events
 * that wait get the deliveries to webhooks that are made with each event from now on; their mails are made
 * afterwards, as before.
 */
export const deliveryQueue: TableChange = {
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
};
