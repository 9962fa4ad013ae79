import { longestTotal } from '../../domain/delivery/retry.ts';
import { emittedEvents, type RegistrableEvent } from '../../domain/events/index.ts';
import { demoFormId, KEYLESS_CREATOR } from '../../domain/ids.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Transaction } from '../database/queries.ts';
import { insertEvents, type NewEvent } from '../events.ts';
import { capacityIn, type FreeCapacity, LEASE_SECONDS, tenantOf } from './delivery-queue-table.ts';
import { END_OF_NEW, POSTPONED_ERROR, postponedTo } from './pending-deliveries.ts';

/**
 * Stores events of one type, which cause no emails, and queues their deliveries to the webhooks that listen:
 * active ones of their forms and projects. Call it in the transaction of what they report, then notify the
 * workers. `schedule` is the retry schedule.
 */
export async function insertAnnouncedEvents(
  tx: Transaction,
  type: RegistrableEvent,
  events: NewEvent[],
  schedule: readonly number[],
): Promise<void> {
  if (events.length === 0) return;
  await insertEvents(
    tx,
    events.map((event) => ({ ...event, fannedOutAt: event.createdAt })),
  );
  await tx.execute(
    `with announced as materialized (
       select id, project_id, form_id, type, created_at from events where id = any($1::text[])
     ), ${queueing('$2', { ofRemoval: type === 'submission.deleted' })}
     select count(*) from queued`,
    [events.map(({ id }) => id), queueingInput(type, { ...NO_CAPACITY, ...timesOf(schedule) })],
  );
}

/**
 * The common table expressions that queue the deliveries of the events in `announced` (with `id`,
 * `project_id`, `form_id`, `type` and `created_at`). Which webhooks listen is read in the same snapshot as
 * what is stored with it, so that none is missed.
 *
 * What fits into the capacity that the process has free is leased to it from the beginning; the rest is due,
 * or postponed while the circuit breaker of its webhook is open.
 * With `ofRemoval` those listen, too, that went with their forms. `answered` names the table of what the events report,
 * for webhooks that receive some submissions alone: with `eventId`, `source` and `answers`. `queued` holds what was
 * queued. `input` names the parameter with `queueingInput`.
 */
export function queueing(input: string, { ofRemoval = false, answered = '' } = {}): string {
  return `${capacityIn(input)}, listening as materialized (
  select w.id, w.form_id as key, w.url, w.keyless, w.open_until, w.filter from webhooks w
  where w.form_id = any(array(select distinct form_id from announced)) and w.deleted_at is null and w.active
    and (select "event" from capacity) = any(w.events)
  union all
  select w.id, w.project_id, w.url, w.keyless, w.open_until, w.filter from webhooks w
  where w.form_id is null and w.project_id = any(array(select distinct project_id from announced))
    and w.deleted_at is null and w.active and (select "event" from capacity) = any(w.events)
  ${ofRemoval ? closingOfAnnounced : ''}
), owed as (
  select e.*, w.id as webhook_id, w.url, ${tenantOf('e.project_id', isStrangers)} as share,
    w.open_until,
    coalesce(w.open_until between now() and now() + p."totalSeconds" * interval '1 second', false) as postponed,
    row_number() over (partition by w.id, ${isStrangers} order by e.id) as receiver_place
  from announced e cross join lateral (values (e.form_id), (e.project_id)) as k(key)
    join listening w on w.key = k.key cross join capacity p left join forms f on f.id = e.form_id
    ${answered === '' ? '' : `join ${answered} i on i."eventId" = e.id`}
  where ${answered === '' ? '' : `${isWanted} and `}e.form_id <> '${demoFormId}' and e.type in (${EMITTED})
), placed as (
  select owed.*,
    not owed.postponed
      and owed.receiver_place <= coalesce(r.free, p."perReceiver")
      and row_number() over (partition by owed.share order by owed.receiver_place) <= coalesce(s.free, p."perTenant")
      and (r.receiver is not null
        or row_number() over (partition by owed.share, r.receiver is null order by owed.receiver_place)
          <= coalesce(s.unknown, p."perTenantUnknown"))
      and row_number() over (order by owed.receiver_place) <= p."total" as fits,
    p."delaySeconds", p."totalSeconds"
  from owed cross join capacity p
    left join free_receivers r on r.tenant = owed.share and r.receiver = owed.webhook_id
    left join free_tenants s on s.tenant = owed.share
), queued as (
  insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
    attempt_count, step, due_at, first_lease_until, created_at, queued_at, error, postponed)
  select ${newDeliveryId('id')}, project_id, form_id, id,
    webhook_id, share, 'webhook', type, webhook_id, url, 0, 0,
    ${toMillisecond(`case when postponed then ${postponedTo('open_until', 'id', END_OF_NEW)} else now() + "delaySeconds" * interval '1 second' end`)},
    case when fits then ${toMillisecond(`now() + ${LEASE_SECONDS} * interval '1 second'`)} end, created_at, now(),
    case when postponed then '${POSTPONED_ERROR}' end, postponed
  from placed
  returning id, event_id, webhook_id, share, url, first_lease_until, postponed
)`;
}

/** SQL of a new id of a delivery, with the time of its event. */
export const newDeliveryId = (eventId: string) =>
  `'dlv_' || substr(${eventId}, 5, 10) || right(replace(gen_random_uuid()::text, '-', ''), 16)`;

/**
 * Whether a webhook `w` receives what is in a row `i`. In SQL an array contains what is in it, and a text only
 * itself.
 */
export const isWanted = `(w.filter is null or (
    coalesce(w.filter->>'source' = i."source", true)
    and (w.filter->'fieldId' is null
      or coalesce((i."answers"::jsonb)->(w.filter->>'fieldId')
        @> any(array[w.filter->'value', w.filter->'alike']::jsonb[]), false))))`;

/** Of a form `f` made without a key, also to webhooks of its project. */
const isStrangers = `f.created_by = '${KEYLESS_CREATOR}'`;

const closingOfAnnounced = `union all
  select w.* from (select distinct form_id, project_id from announced) as a, lateral (${closingWebhooks('a')}) as w`;

/**
 * Selects the webhooks that went with a form, or with its project, and are told of its submissions: `of` is a row with
 * `form_id` and `project_id`. None while the form is there.
 */
export function closingWebhooks(of: string): string {
  return `select w.id, coalesce(w.form_id, w.project_id) as key, w.url, w.keyless, w.open_until, w.filter from webhooks w
    where w.deleted_at is not null and w.active
      and (w.form_id = ${of}.form_id or (w.form_id is null and w.project_id = ${of}.project_id))
      and exists (select from forms f where f.id = ${of}.form_id and f.deleted_at is not null)`;
}

const EMITTED = emittedEvents.map((type) => `'${type}'`).join();

/** The parameter of `queueing`. */
export function queueingInput(event: RegistrableEvent, capacity: Capacity): string {
  return JSON.stringify({ event, ...capacity });
}

/** The part of `Capacity` that is the same for all processes with this retry schedule. */
export function timesOf(schedule: readonly number[]): Pick<Capacity, 'delaySeconds' | 'totalSeconds'> {
  return { delaySeconds: schedule[0] ?? 0, totalSeconds: longestTotal(schedule) };
}

/** For processes that attempt nothing, and for events that can wait. */
export const NO_CAPACITY: Capacity = {
  delaySeconds: 0,
  totalSeconds: 0,
  total: 0,
  bytes: 0,
  mails: 0,
  perReceiver: 0,
  perTenant: 0,
  perTenantUnknown: 0,
  receivers: [],
  tenants: [],
};

/** How many deliveries of what it stores a process can attempt at once. */
export type Capacity = FreeCapacity & {
  /** Seconds until the first attempt; if there are any, nothing is leased. */
  delaySeconds: number;
  /** The longest that the retry schedule lasts, and so for how long a delivery is postponed. */
  totalSeconds: number;
  total: number;
};
