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
export const refusedWriters: TableChange = {
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
};
