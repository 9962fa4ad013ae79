import type { TableChange } from './table-change.ts';

/** Of the newest events, if the queue is new: those of which it lacks the deliveries to webhooks, or all of them. */
const unqueued = `from (select * from "events" order by "id" desc limit 10000) e
  where exists (
      select from "migrations" where "name" = '2026-11-22-delivery-queue' and "executed_at" > now() - interval '1 hour'
    ) and e.created_at > now() - interval '1 hour' and e.form_id <> 'form_demo'
    and e.type in ('submission.created', 'submission.completed', 'session.expired', 'session.cancelled')`;

const repairs = [
  `update "events" set "fanned_out_at" = null where "id" in (
     select e.id ${unqueued} and e.submission_id is not null and e.fanned_out_at is not null
       and not exists (select from "delivery_queue" q where q.event_id = e.id)
       and not exists (select from "deliveries" d where d.event_id = e.id))`,
  `insert into "delivery_queue" (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
     due_at, created_at, queued_at)
   select 'dlv_' || substr(e.id, 5, 10) || right(replace(gen_random_uuid()::text, '-', ''), 16), e.project_id,
     e.form_id, e.id, w.id, e.project_id || case when w.keyless then ' keyless' else '' end, 'webhook', e.type, w.id,
     w.url, now(), e.created_at, now()
   from (select e.* ${unqueued}) e
     join "webhooks" w on w.form_id = e.form_id or (w.form_id is null and w.project_id = e.project_id)
   where e.fanned_out_at is null and w.active and w.deleted_at is null and w.created_at <= e.created_at
     and case e.type when 'submission.completed' then 'submission.created' else e.type end = any(w.events)
     and not exists (select from "delivery_queue" q where q.event_id = e.id and q.webhook_id = w.id)
     and not exists (select from "deliveries" d where d.event_id = e.id and d.webhook_id = w.id)`,
];

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
  /**
   * Refuses events from versions before 2026-11-22-delivery-queue, which queue no deliveries with them: such a version
   * beside a later one would answer 201 and its receivers would never be called. All later ones say of the events that
   * webhooks listen to whether their mails are made. What doesn't gets the default, by which the trigger finds it.
   *
   * What such a version stored while 2026-11-22-delivery-queue ran was seen by no statement of that, so it is queued here:
   * with the table locked, nothing is under way any more.
   *
   * A serialization failure is what the refused versions repeat and then answer with 503, on the same connection.
   */
  {
    name: '2026-11-23-refused-writers',
    sql: [
      `alter table "events" alter column "fanned_out_at" set default '-infinity'`,
      `create or replace function "settle_event_default"() returns trigger language plpgsql as $$
        begin
          if new.type in ('submission.created', 'submission.completed', 'session.expired', 'session.cancelled') then
            raise exception 'This version of the service is too old for the database' using errcode = '40001';
          end if;
          new.fanned_out_at := null;
          return new;
        end
      $$`,
      `create trigger "events_default" before insert on "events" for each row
        when (new.fanned_out_at = '-infinity') execute function "settle_event_default"()`,
      ...repairs,
    ],
  },
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
