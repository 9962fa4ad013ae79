import { END_OF_BODY, type SessionEnd } from '../../domain/events/bodies.ts';
import { eventTypes, sessionEvent } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import { scopesToGive } from '../../domain/scopes.ts';
import { toMillisecond } from '../database/columns.ts';
import type { Transaction } from '../database/queries.ts';
import type { Session } from '../sessions/session-table.ts';
import { CALLBACKS } from '../webhooks/webhooks.ts';
import { capacityIn } from './delivery-queue-table.ts';
import { END_OF_NEW, POSTPONED_ERROR, postponedTo } from './pending-deliveries.ts';
import { insertAnnouncedEvents, NO_CAPACITY, queueingInput, timesOf } from './webhook-deliveries.ts';

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
    attempt_count, step, due_at, created_at, queued_at, error, postponed)
  select 'dlv_' || substr(event_id, 5, 10) || right(replace(gen_random_uuid()::text, '-', ''), 16), project_id, form_id,
    event_id, receiver, project_id, 'webhook', 'session.ended', receiver, url, 0, 0,
    ${toMillisecond(`case when waits then ${postponedTo('open_until', 'event_id', END_OF_NEW)} else now() + "delaySeconds" * interval '1 second' end`)},
    created_at, now(), case when waits then '${POSTPONED_ERROR}' end, waits
  from (
    select e.*, w.open_until, p."delaySeconds", p."totalSeconds",
      coalesce(w.open_until between now() and now() + p."totalSeconds" * interval '1 second', false) as waits
    from (select *, ${receiver} as receiver, callback->>'url' as url from ended) e cross join capacity p
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
