import type { Cause } from '../../domain/delivery/causes.ts';
import { PROCESSED_REDIRECTS } from '../../domain/delivery/retry.ts';
import { timeOrNull, toMillisecond } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { CALLBACKS, closedAt } from '../webhooks/webhooks.ts';
import { tenantOf } from './fairness.ts';
import { POSTPONED, postponedTo } from './postpone.ts';

/**
 * Stores the results of claimed deliveries, in one statement: what is finished moves from the queue to the log, the
 * rest becomes due again (or waits, if nothing was tried and its webhook's circuit breaker is open), each failed
 * attempt gets a row (the successful one is in the log), and webhooks note their successes and failures. A result
 * whose lease was lost changes nothing. An email to sign in with that was not sent leaves no trace: anybody can ask
 * for any number, to any address. Nor does a reminder that nobody needs any more.
 *
 * Returns what has changed for webhooks.
 */
export async function settleDeliveries(db: Queries, results: DeliveryResult[]): Promise<HealthChange[]> {
  const rows = await db.execute(SETTLE, [JSON.stringify(results.map(columnsOf))], { prepared: true });
  return rows.flatMap((row): HealthChange[] => {
    const id = String(row.id);
    const openUntil = timeOrNull(row.opened_until);
    const failingSince = timeOrNull(row.failed_since);
    if (row.too_long === true) return [{ id, change: 'failing', cause: 'too_long' }];
    if (row.never_worked === true) return [{ id, change: 'failing', cause: 'never_worked' }];
    if (row.closed === true) return [{ id, change: 'closed', failingSince }];
    const opened = { tenant: String(row.tenant), isAgain: row.opens_again === true };
    return openUntil === null ? [] : [{ id, change: 'opened', ...opened, openUntil }];
  });
}

/** A result counts only while the row has the lease that it was claimed with: another process may have it by now. */
const isOfResult = `q.id = r.id and coalesce(q.first_lease_until, q.leased_until) = r.lease`;

/** How long a webhook may fail without one success before it is turned off. */
const TOO_LONG = `interval '5 days'`;

/** How many attempts in a row must fail before a webhook's other deliveries wait. */
const FAILURES_TO_OPEN = 5;

/**
 * A webhook's circuit breaker stays open for a quarter of the time that it has been failing: a restart of the
 * receiver costs seconds, and one that is down for days a call in five minutes.
 */
const opensUntil = toMillisecond(
  `now() + least(greatest((now() - coalesce(w.failing_since, now())) / 4, interval '5 seconds'), interval '5 minutes')`,
);

/**
 * People are told once that a webhook fails, when its circuit breaker opens, and once that it works again; at most
 * once an hour that it fails. Rows that stand for origins of callbacks are nobody's.
 */
const turnsBad = `(case when h.opens and w.active and not w.announced_failing and w.form_id is distinct from '${CALLBACKS}'
    then not exists (select from events e where e.id = w.announced_by and e.created_at > now() - interval '1 hour')
    else false end)`;
const turnsGood = '(h.works and w.announced_failing)';

/** The id of an event of about now. */
const newEventId = `'evt_' || substr(max(attempt_id), 5, 10) || right(replace(gen_random_uuid()::text, '-', ''), 16)`;

/** A receiver that redirects after it has processed a request neither works nor fails. */
const tellsOfReceiver = `coalesce(tried_status not in (${[...PROCESSED_REDIRECTS].join(', ')}), true)`;

/** How often the webhook of a form made without a key may fail before it has ever worked. */
const KEYLESS_FAILURES = 10;

/**
 * Made once: a text of this length takes a while to make, and to be found among those that are prepared.
 *
 * What is finished has no delay anyway. The planner takes it for one row then, and finds it by its id; for a hundred it
 * would read all pages of a queue that is small when it plans, and for long after it has grown.
 *
 * The commit is not flushed, since submissions would wait for the flush (`npm run bench -- neighbours`). After a crash of
 * the server, what was settled in the second before it is repeated like what was under way.
 */
const SETTLE = `with result (id, lease, status, delay_ms, error, cause, tried, steps, attempt_id, started_at, duration_ms,
  response_status, response_body) as materialized (
  select * from json_to_recordset($1::json) as r(
    id text, lease timestamptz, status text, "delayMs" double precision, error text, cause text, tried boolean, steps int,
    "attemptId" text, "startedAt" timestamptz, "durationMs" int, "responseStatus" int, "responseBody" text)
  where set_config('synchronous_commit', 'off', true) is not null
),
finished as (
  delete from delivery_queue q using result r
  where ${isOfResult} and r.status <> 'pending' and r.delay_ms is null
  returning q.*, r.status, r.tried, r.attempt_id, r.response_status as tried_status, r.error as result_error,
    r.cause as result_cause
),
logged as (
  insert into deliveries
    (id, project_id, form_id, event_id, webhook_id, channel, kind, receiver, url, status, attempt_count,
     created_at, last_attempt_at, delivered_at, response_status, error, attempt_id, duration_ms,
     response_body, cause)
  select f.id, f.project_id, f.form_id, f.event_id, f.webhook_id, f.channel, f.kind, f.receiver, f.url, f.status,
    f.attempt_count + f.tried::int, f.created_at,
    case when f.tried then r.started_at else f.last_attempt_at end,
    case when f.status = 'delivered' then now() end,
    case when f.tried then r.response_status else f.response_status end, f.result_error,
    case when f.status = 'delivered' then r.attempt_id end,
    case when f.status = 'delivered' then r.duration_ms end,
    case when f.status = 'delivered' then r.response_body end, f.result_cause
  from finished f join result r on r.id = f.id
  where (f.kind <> 'sign_in' or r.tried)
    and not (f.attempt_count = 0 and f.result_cause is not distinct from '${'session_ended' satisfies Cause}')
),
untried as materialized (
  select r.id, ${postponedTo('w.open_until', 'r.id', 'q.queued_at')} as due_at from result r join delivery_queue q on q.id = r.id join webhooks w on w.id = q.webhook_id
  where r.status = 'pending' and not r.tried and w.open_until > now()
),
postponed as (
  update delivery_queue q set
    due_at = ${toMillisecond(
      `case when u.id is null then now() + r.delay_ms * interval '1 millisecond' else u.due_at end`,
    )},
    postponed = q.postponed or u.id is not null,
    first_lease_until = null,
    leased_until = null,
    attempt_count = q.attempt_count + r.tried::int,
    step = q.step + r.steps,
    last_attempt_at = case when r.tried then r.started_at else q.last_attempt_at end,
    response_status = case when r.tried then r.response_status else q.response_status end,
    error = case when u.id is null then r.error else '${POSTPONED.error}' end,
    cause = case when u.id is null then r.cause else '${POSTPONED.cause}' end
  from result r left join untried u on u.id = r.id
  where ${isOfResult} and r.status = 'pending'
  returning q.id, q.attempt_count, q.webhook_id, r.status, r.tried, r.attempt_id, r.response_status as tried_status
),
settled as (
  select id, attempt_count + tried::int as attempt_count, webhook_id, status, tried, attempt_id, tried_status
  from finished
  union all
  select id, attempt_count, webhook_id, status, tried, attempt_id, tried_status from postponed
),
failures as (
  insert into attempts
    (id, delivery_id, number, status, response_status, error, response_body, duration_ms, started_at)
  select r.attempt_id, r.id, s.attempt_count, 'failed', r.response_status, r.error, r.response_body,
    r.duration_ms, r.started_at
  from settled s join result r on r.id = s.id where r.tried and s.status <> 'delivered'
),
tried as (
  select webhook_id, bool_or(status = 'delivered') as works, count(*) as tries,
    ${newEventId} as event_id
  from settled where tried and webhook_id is not null and ${tellsOfReceiver} group by webhook_id
),
health as materialized (
  select tried.*, w.open_until as was_open_until, w.failing_since as failed_since,
    not works and not w.keyless and w.failures_in_row + tries >= ${FAILURES_TO_OPEN}
      and coalesce(w.open_until <= now(), true) as opens,
    coalesce(w.failing_since <= now() - ${TOO_LONG}, false) as fails_too_long
  from tried join webhooks w on w.id = tried.webhook_id
),
changed as (
  update webhooks w set
    last_success_at = case when h.works then now() else w.last_success_at end,
    failing_since = case when h.works then null else coalesce(w.failing_since, now()) end,
    failures_before_success = w.failures_before_success
      + case when h.works or w.last_success_at is not null then 0 else h.tries end,
    failures_in_row = case when h.works then 0 else w.failures_in_row + h.tries end,
    open_until = case when h.opens then ${opensUntil} when h.works then ${closedAt('w.open_until')} else w.open_until end,
    announced_failing = case when ${turnsBad} then true when ${turnsGood} then false else w.announced_failing end,
    announced_by = case when ${turnsBad} or ${turnsGood} then h.event_id else w.announced_by end
  from health h
  where w.id = h.webhook_id and (
    not h.works
    or w.failing_since is not null
    or w.announced_failing
    or w.last_success_at is null
    or w.last_success_at < now() - interval '1 minute'
  )
  returning w.id, ${tenantOf('w.project_id', 'w.keyless')} as tenant,
    w.active and not h.works and h.fails_too_long
      and w.form_id is distinct from '${CALLBACKS}' as too_long,
    w.active and w.keyless and w.last_success_at is null
      and w.failures_before_success >= ${KEYLESS_FAILURES} as never_worked,
    case when h.opens then w.open_until end as opened_until,
    h.works and h.was_open_until is not null and h.failed_since is not null as closed, h.was_open_until is not null as opens_again, h.failed_since,
    w.project_id, w.form_id, w.url, w.announced_failing, h.event_id, w.announced_by = h.event_id as is_announced
),
announced as (
  insert into events (id, project_id, form_id, type, body, created_at, fanned_out_at)
  select event_id, project_id, coalesce(form_id, ''),
    case when announced_failing then 'webhook.failing' else 'webhook.working' end,
    json_build_object('webhookId', id, 'url', url)::text, now(),
    null::timestamptz
  from changed where is_announced
)
select id, tenant, too_long, never_worked, opened_until, opens_again, closed, failed_since from changed`;

function columnsOf({ attempt, ...result }: DeliveryResult) {
  if (attempt === undefined) return { steps: 0, ...result, tried: false };
  const durationMs = Math.round(attempt.durationMs);
  return { steps: 1, ...attempt, ...result, tried: true, attemptId: attempt.id, durationMs };
}

/** The result of a claimed delivery. */
export type DeliveryResult = {
  id: string;
  lease: string;
  status: 'delivered' | 'failed' | 'pending';
  /** When to try again, from now; with `pending` only. */
  delayMs?: number;
  /** Why it failed, or what it waits for: in words, and by the code of these if they have one. */
  error?: string;
  cause?: Cause;
  /** How many steps of the retry schedule it goes on; by default one if something was tried. */
  steps?: number;
  /** Absent if nothing was tried: the delivery was given back, or waits for a limit. */
  attempt?: {
    id: string;
    startedAt: Date;
    durationMs: number;
    responseStatus?: number | undefined;
    responseBody?: string | undefined;
  };
};

/**
 * What the results of a webhook's deliveries mean for it: it is to be turned off, or its circuit breaker has
 * opened, or closed.
 */
export type HealthChange = { id: string } & (
  | { change: 'failing'; cause: 'too_long' | 'never_worked' }
  | { change: 'opened'; tenant: string; openUntil: Date; isAgain: boolean }
  | { change: 'closed'; failingSince: Date | null }
);
