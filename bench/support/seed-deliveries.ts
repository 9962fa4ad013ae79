import { setTimeout as sleep } from 'node:timers/promises';
import { smallestIdAt } from '../../src/domain/ids.ts';
import { runOn } from '../../test/support/postgres.ts';
import type { Load } from './load.ts';
import { queryOn } from './postgres.ts';

/**
 * Stores events that became deliveries to these webhooks in turn, all due within 200 ms from `dueAt` on:
 * faster than anybody delivers them, but not at one instant, since that never happens.
 */
export async function seedDeliveries(
  url: string,
  { formId, body, count, webhooks, dueAt }: Seed,
): Promise<void> {
  const ids = webhooks.map(({ id }) => id);
  const urls = webhooks.map((webhook) => webhook.url);
  // The sweeps remove what is old by its id.
  const time = smallestIdAt('evt', Date.now()).slice('evt_'.length, -RANDOM_CHARS);
  const params = [formId, body, count, ids, urls, dueAt.toISOString(), time];
  await queryOn(url, SEED, params);
  await runOn(url, 'analyze events, delivery_queue');
}

/** Waits until all deliveries due from `dueAt` on are settled, and tells how that went. */
export async function settledDeliveries(url: string, { dueAt, count }: Settled): Promise<Load> {
  for (;;) {
    const [row = {}] = await queryOn(url, SETTLED, [dueAt.toISOString()]);
    if (Number(row.delivered) + Number(row.failed) >= count) {
      const seconds = Number(row.seconds);
      const [p50Ms, p99Ms, maxMs] = [Number(row.p50), Number(row.p99), Number(row.longest)];
      const units = Number(row.delivered);
      return { units, errors: Number(row.failed), seconds, p50Ms, p99Ms, maxMs, statuses: {} };
    }
    await sleep(POLL_MS);
  }
}

/** The random part of an id; the time is before it. */
const RANDOM_CHARS = 16;

/** The end is read from the rows, so that asking seldom costs no precision. */
const POLL_MS = 100;

/** Ids carry a random part, since many turns seed the same database. */
const SEED = `
with seeded as (
  select n, $7 || lpad(to_hex((random() * 2147483647)::int), 8, '0') || lpad(to_hex(n), 8, '0') as id
  from generate_series(1, $3::int) n
), events as (
  insert into events (id, project_id, form_id, type, body, created_at, fanned_out_at)
  select 'evt_' || s.id, f.project_id, f.id, 'submission.created', $2, now(), now()
  from seeded s, forms f where f.id = $1
)
insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url,
  due_at, created_at, queued_at)
select 'dlv_' || s.id, f.project_id, f.id, 'evt_' || s.id, ($4::text[])[place], f.project_id, 'webhook',
  'submission.created', ($4::text[])[place], ($5::text[])[place],
  $6::timestamptz + s.n * interval '200 ms' / $3::int, now(), now()
from seeded s, forms f, lateral (select 1 + s.n % cardinality($4::text[]) as place) p where f.id = $1`;

/** Failed are also those whose first attempt failed and that wait for the next. */
const SETTLED = `
select count(*) filter (where status = 'delivered') as delivered,
  (select count(distinct delivery_id) from attempts where started_at >= $1::timestamptz) as failed,
  extract(epoch from max(delivered_at) - $1::timestamptz) as seconds,
  percentile_cont(0.5) within group (order by duration_ms) as p50,
  percentile_cont(0.99) within group (order by duration_ms) as p99,
  max(duration_ms) as longest
from deliveries where last_attempt_at >= $1::timestamptz`;

type Settled = { dueAt: Date; count: number };
type Seed = {
  formId: string;
  body: string;
  count: number;
  webhooks: { id: string; url: string }[];
  dueAt: Date;
};
