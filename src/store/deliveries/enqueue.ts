import { END_OF_BODY, type SessionEnd } from '../../domain/events/bodies.ts';
import { emittedEvents, eventTypes, type RegistrableEvent, sessionEvent } from '../../domain/events/index.ts';
import { demoFormId, KEYLESS_CREATOR, newId } from '../../domain/ids.ts';
import { scopesToGive } from '../../domain/scopes.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';
import { EventEntity, insertEvents, type NewEvent } from '../events.ts';
import type { Session } from '../sessions/session-table.ts';
import { CALLBACKS } from '../webhooks/webhooks.ts';
import { type Capacity, capacityIn, fairOf, NO_CAPACITY, tenantOf, timesOf } from './fairness.ts';
import { POSTPONED, postponedTo } from './postpone.ts';
import { LEASE_SECONDS, QueuedDeliveryEntity } from './queue-table.ts';

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
), owed as materialized (
  select ${newDeliveryId('e.id')} as id, e.id as event_id, e.project_id, e.form_id, e.type, e.created_at,
    'webhook' as channel, w.id as receiver, w.url, ${tenantOf('e.project_id', isStrangers)} as share,
    w.open_until, ${opensAgain} as postponed
  from announced e cross join lateral (values (e.form_id), (e.project_id)) as k(key)
    join listening w on w.key = k.key cross join capacity left join forms f on f.id = e.form_id
    ${answered === '' ? '' : `join ${answered} i on i."eventId" = e.id`}
  where ${answered === '' ? '' : `${isWanted} and `}e.form_id <> '${demoFormId}' and e.type in (${EMITTED})
), ${fairOf('(select * from owed where not postponed)', 'event_id')}, leased as (
  select id from fair order by tenant_place, place, event_id limit (select "total" from capacity)
), queued as (
  insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
    attempt_count, step, due_at, first_lease_until, created_at, queued_at, error, postponed, cause)
  select owed.id, project_id, form_id, event_id, receiver, share, channel, type, receiver, url, 0, 0,
    ${dueOfNew},
    case when leased.id is not null then ${toMillisecond(`now() + ${LEASE_SECONDS} * interval '1 second'`)} end,
    created_at, now(), ${waitOfNew}
  from owed cross join capacity left join leased on leased.id = owed.id
  returning id, event_id, webhook_id, share, url, first_lease_until, postponed
)`;
}

/** SQL of the end of the retry schedule of what is queued now. */
const END_OF_NEW = `now() + "totalSeconds" * interval '1 second'`;

/** SQL: whether the circuit breaker of a webhook `w` is open, and closes or tries again within the retry schedule. */
const opensAgain = `coalesce(w.open_until between now() and ${END_OF_NEW}, false)`;

/** SQL of when a new delivery with an `event_id` is due that is `postponed` until `open_until`, or not. */
const dueOfNew = toMillisecond(`case when postponed then ${postponedTo('open_until', 'event_id', END_OF_NEW)}
      else now() + "delaySeconds" * interval '1 second' end`);

/** SQL of the columns `error`, `postponed` and `cause` of a new delivery. */
const waitOfNew = `case when postponed then '${POSTPONED.error}' end, postponed, case when postponed then '${POSTPONED.cause}' end`;

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

/**
 * Writes an event for one webhook alone, together with its delivery. Call in a transaction, then notify the workers.
 */
export async function insertTestDelivery(
  db: Queries,
  { event, delivery }: { event: NewEvent; delivery: TestDelivery },
): Promise<void> {
  const { id, webhookId, url, keyless } = delivery;
  const { createdAt, projectId, formId, type } = event;
  await db.write(async (em) => {
    await em.insert(EventEntity, { ...event, fannedOutAt: createdAt });
    await em.insert(QueuedDeliveryEntity, {
      id,
      projectId,
      formId,
      eventId: event.id,
      webhookId,
      share: keyless ? `${projectId} keyless` : projectId,
      channel: 'webhook',
      kind: type,
      receiver: webhookId,
      url,
      mail: null,
      dueAt: createdAt,
      createdAt,
      queuedAt: createdAt,
    });
  });
}

/**
 * Stores the events of sessions that ended without a submission, with their deliveries: to the webhooks that listen,
 * and to the sessions' own callbacks. Call it in the transaction that ends them, then notify the workers. `at` is in
 * milliseconds, `schedule` the retry schedule.
 */
export async function announceEnds(
  tx: Transaction,
  type: EndWithoutSubmission,
  sessions: Session[],
  { at, schedule }: { at: number; schedule: readonly number[] },
): Promise<void> {
  const events = sessions.map((session) => sessionEvent(type, session, at));
  await insertAnnouncedEvents(tx, type, events, schedule);
  const called = sessions.filter(({ callback }) => callback !== null);
  if (called.length === 0) return;
  const ended = called.map((session) => ({
    ...callbackEvent(session, outcomes[type], at),
    sessionId: session.id,
  }));
  await tx.execute(
    `with ${capacityIn('$2')}, ended as (
       select i."eventId" as event_id, null as submission_id, s.id as session_id, s.project_id, s.form_id, s.callback,
         $3::timestamptz as created_at,
         i."start" || case when s.decline_reason is not null and ${mayCarryAnswers('s.callback')}
           then ',"reason":' || to_json(s.decline_reason) else '' end || '${END_OF_BODY}' as body
       from json_to_recordset($1::json) as i("eventId" text, "sessionId" text, "start" text)
         join sessions s on s.id = i."sessionId"
     ), ${callingBack}
     select count(*) from called_back`,
    [
      JSON.stringify(ended),
      queueingInput(type, { ...NO_CAPACITY, ...timesOf(schedule) }),
      new Date(at).toISOString(),
    ],
  );
}

/** The event of a callback, without the answers; the body is still to be ended. `at` is in milliseconds. */
export function callbackEvent(
  { id: sessionId, formId, metadata }: Pick<Session, 'id' | 'formId' | 'metadata'>,
  outcome: Omit<SessionEnd, 'sessionId' | 'formId' | 'metadata'>,
  at: number,
): { eventId: string; start: string } {
  const eventId = newId('evt', at);
  const head = { id: eventId, at: new Date(at).toISOString() };
  return {
    eventId,
    start: eventTypes['session.ended'].body(head, { sessionId, formId, ...outcome, metadata }),
  };
}

/** SQL: whether the key that made a session with this callback could give its answers away then, and can now. */
export function mayCarryAnswers(callback: string): string {
  return `exists (select from api_keys k where k.id = ${callback}->>'keyId'
    and (k.expires_at is null or k.expires_at > now()) and k.scopes && '{${scopesToGive('destination').join()}}'::text[])`;
}

/** One for each origin of a project, so that an origin that does not answer delays no other. */
const receiver = `'wh_' || left(md5(project_id || ' ' || (callback->>'origin')), 26)`;

/**
 * The common table expressions that store the events of the callbacks in `ended` and queue their deliveries;
 * `called_back` holds those. They follow `capacityIn`.
 */
export const callingBack = `called as (
  insert into events (id, project_id, form_id, type, submission_id, session_id, body, created_at, fanned_out_at)
  select event_id, project_id, form_id, 'session.ended', submission_id, session_id, body, created_at, now() from ended
), origins as (
  insert into webhooks (id, project_id, form_id, url, events, secret, keyless, from_definition, active,
    failures_before_success, created_at, failures_in_row, sends_traceparent, announced_failing)
  select distinct ${receiver}, project_id, '${CALLBACKS}', callback->>'origin', '{}'::text[], '', false, false, true,
    0, now(), 0, false, false
  from ended order by 1
  on conflict do nothing
), called_back as (
  insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
    attempt_count, step, due_at, created_at, queued_at, error, postponed, cause)
  select ${newDeliveryId('event_id')}, project_id, form_id, event_id, receiver, project_id, 'webhook', 'session.ended',
    receiver, url, 0, 0, ${dueOfNew}, created_at, now(), ${waitOfNew}
  from (
    select e.*, w.open_until, "delaySeconds", "totalSeconds", ${opensAgain} as postponed
    from (select *, ${receiver} as receiver, callback->>'url' as url from ended) e cross join capacity
      left join webhooks w on w.id = e.receiver
  ) owed
  returning id
)`;

const outcomes = {
  'session.expired': { outcome: 'expired' },
  'session.cancelled': { outcome: 'cancelled' },
  'session.declined': { outcome: 'declined' },
} as const;

type EndWithoutSubmission = keyof typeof outcomes;

type TestDelivery = { id: string; webhookId: string; url: string; keyless: boolean };
