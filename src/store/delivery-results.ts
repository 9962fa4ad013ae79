import { toMillisecond } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/**
 * Stores the results of claimed deliveries, in one statement: their status, an attempt for each that was
 * tried, and their webhooks' successes and failures. A result whose lease was lost changes nothing.
 *
 * Returns the webhooks that should be turned off.
 */
export async function settleDeliveries(db: Queries, results: DeliveryResult[]): Promise<FailingWebhook[]> {
  const rows = await db.execute(
    `with result as materialized (
       select * from json_to_recordset($1::json) as r(
         id text, lease timestamptz, status text, delay_ms double precision, tried boolean, attempt_id text,
         started_at timestamptz, duration_ms int, response_status int, error text, response_body text)
     ),
     settled as (
       update deliveries d set
         status = r.status,
         due_at = case when r.status = 'pending' then ${toMillisecond(`now() + r.delay_ms * interval '1 millisecond'`)} end,
         leased_until = null,
         attempt_count = d.attempt_count + r.tried::int,
         step = d.step + r.tried::int,
         last_attempt_at = case when r.tried then r.started_at else d.last_attempt_at end,
         delivered_at = case when r.status = 'delivered' then now() end,
         response_status = case when r.tried then r.response_status else d.response_status end,
         error = r.error
       from result r
       where d.id = r.id and d.status = 'pending' and d.leased_until = r.lease
       returning d.id, d.attempt_count, d.webhook_id, d.status, r.tried
     ),
     logged as (
       insert into attempts
         (id, delivery_id, number, status, response_status, error, response_body, duration_ms, started_at)
       select r.attempt_id, r.id, s.attempt_count,
         case when s.status = 'delivered' then 'delivered' else 'failed' end,
         r.response_status, r.error, r.response_body, r.duration_ms, r.started_at
       from settled s join result r on r.id = s.id where r.tried
     ),
     health as (
       select webhook_id, bool_or(status = 'delivered') as works, count(*) as tries
       from settled where tried and webhook_id is not null group by webhook_id order by webhook_id
     )
     update webhooks w set
       last_success_at = case when h.works then now() else w.last_success_at end,
       failing_since = case when h.works then null else coalesce(w.failing_since, now()) end,
       failures_before_success = w.failures_before_success
         + case when h.works or w.last_success_at is not null then 0 else h.tries end
     from health h
     where w.id = h.webhook_id and (
       w.failing_since is distinct from null and h.works
       or w.last_success_at is null
       or h.works and w.last_success_at < now() - interval '1 minute'
       or not h.works and (w.failing_since is null or w.failing_since <= now() - ${TOO_LONG})
     )
     returning w.id, w.active and not h.works and w.failing_since <= now() - ${TOO_LONG} as too_long,
       w.active and w.keyless and w.last_success_at is null
         and w.failures_before_success >= ${KEYLESS_FAILURES} as never_worked`,
    [JSON.stringify(results.map(columnsOf))],
  );
  return rows.flatMap((row) => {
    const id = String(row.id);
    if (row.too_long === true) return { id, cause: 'too_long' };
    return row.never_worked === true ? { id, cause: 'never_worked' } : [];
  });
}

/** How long a webhook may fail without one success before it is turned off. */
const TOO_LONG = `interval '5 days'`;

/** How often the webhook of a form made without a key may fail before it has ever worked. */
const KEYLESS_FAILURES = 10;

function columnsOf(result: DeliveryResult) {
  const { id, lease, status, delayMs = null, error = null, attempt } = result;
  return {
    id,
    lease,
    status,
    delay_ms: delayMs,
    error,
    tried: attempt !== undefined,
    attempt_id: attempt?.id,
    started_at: attempt?.startedAt,
    duration_ms: attempt && Math.round(attempt.durationMs),
    response_status: attempt?.responseStatus,
    response_body: attempt?.responseBody,
  };
}

/** The result of a claimed delivery. */
export type DeliveryResult = {
  id: string;
  lease: string;
  status: 'delivered' | 'failed' | 'pending';
  /** When to try again, from now; with `pending` only. */
  delayMs?: number;
  /** Why it failed, or what it waits for. */
  error?: string;
  /** Absent if nothing was tried: the delivery was given back, or waits for a limit. */
  attempt?: {
    id: string;
    startedAt: Date;
    durationMs: number;
    responseStatus?: number | undefined;
    responseBody?: string | undefined;
  };
};

export type FailingWebhook = { id: string; cause: 'too_long' | 'never_worked' };
