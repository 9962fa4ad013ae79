import { defineEntity, p } from '@mikro-orm/core';
import { id, type JsonObject, json, text, time, timeOf, timeOrNull } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';

/**
 * What is pending: one event (or one email) on its way to one receiver. Settling deletes the row and writes
 * that of the log; between the two nothing is written for a delivery that succeeds at once.
 */
export const QueuedDeliveryEntity = defineEntity({
  name: 'QueuedDelivery',
  tableName: 'delivery_queue',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    /** Null for emails without an event, such as the one about a webhook that was turned off. */
    eventId: id().strictNullable(),
    webhookId: id().strictNullable(),
    /** Whose part of the capacity it uses: the project's, or that of its forms made without a key. */
    share: text().collation('C'),
    channel: p.enum(['webhook', 'mail']).columnType('text'),
    /**
     * A webhook's event type, or what an email is: `owner`, `confirmation`, `autoresponse`, `recipient_confirmation`
     * …
     */
    kind: text(),
    /** The webhook's id, or the email address. Claims are shared fairly between receivers. */
    receiver: text().collation('C'),
    /** Where a webhook delivery goes, for replays too; null for email. */
    url: text().strictNullable(),
    /** What an email says; null for webhooks, whose body is the event's. */
    mail: json<JsonObject>().strictNullable(),
    attemptCount: p.integer().default(0),
    /** Its place in the retry schedule, from when it was made or last replayed. */
    step: p.integer().default(0),
    /** The next attempt. */
    dueAt: time(),
    /**
     * The lease of the process that stored it, which attempts it without asking for it. Null from the end
     * of that lease on: only then the row is in the indexes of what is pending.
     */
    firstLeaseUntil: time().strictNullable(),
    /** When the lease of the process that claimed it ends. In no index: see `claimDue`. */
    leasedUntil: time().strictNullable(),
    createdAt: time(),
    /** When it was made or last replayed. */
    queuedAt: time(),
    /** Put off by the circuit breaker of its webhook, once or more, since it was queued. */
    postponed: p.boolean().default(false),
    lastAttemptAt: time().strictNullable(),
    /** Of the last attempt. */
    responseStatus: p.integer().strictNullable(),
    /** Of the last attempt, or what it waits for. */
    error: text().strictNullable(),
  },
  indexes: [
    { name: 'delivery_queue_due', properties: ['dueAt'], where: 'first_lease_until is null' },
    {
      name: 'delivery_queue_by_receiver',
      properties: ['share', 'receiver', 'dueAt'],
      where: 'first_lease_until is null',
    },
    {
      name: 'delivery_queue_by_webhook',
      properties: ['webhookId', 'id'],
      where: 'first_lease_until is null and webhook_id is not null',
    },
    { name: 'delivery_queue_by_form', properties: ['formId', 'id'], where: 'first_lease_until is null' },
    {
      name: 'delivery_queue_by_event',
      properties: ['eventId'],
      where: 'first_lease_until is null and event_id is not null',
    },
    {
      name: 'delivery_queue_first_leases',
      properties: ['firstLeaseUntil'],
      where: 'first_lease_until is not null',
    },
  ],
});

/**
 * Selects columns of the pending deliveries that fulfil a condition on an indexed column. Those with a first
 * lease are in no index but that of their leases: there are a few hundred at most.
 */
export function pendingWhere(condition: string, columns = 'id'): string {
  return `select ${columns} from delivery_queue where first_lease_until is null and ${condition}
    union all select ${columns} from delivery_queue where first_lease_until is not null and ${condition}`;
}

/** SQL: pending and not leased. */
export const isFree = `first_lease_until is null and (leased_until is null or leased_until <= now())`;

/** SQL, of webhooks that work again: what their circuit breakers have put off is still to be made due. */
export const isResumable = 'open_until is not null and failing_since is null';

/** SQL of the tenant that a delivery belongs to, which its column `share` names. */
export function tenantOf(projectId: string, keyless: string): string {
  return `${projectId} || case when ${keyless} then ' keyless' else '' end`;
}

/**
 * Common table expressions that read a JSON parameter with `FreeCapacity`: `capacity`, `free_receivers` and
 * `free_tenants`.
 */
export function capacityIn(parameter: string): string {
  return `
capacity as materialized (
  select * from json_to_record(${parameter}::json) as p("event" text, "delaySeconds" double precision,
    "totalSeconds" double precision, "total" int, "bytes" int, "mails" int, "perReceiver" int, "perTenant" int, "perTenantUnknown" int, "receivers" json, "tenants" json)
), free_receivers as materialized (
  select r.* from capacity, json_to_recordset("receivers") as r(tenant text, receiver text, free int)
), free_tenants as materialized (
  select s.* from capacity, json_to_recordset("tenants") as s(tenant text, free int, "unknown" int, mails int)
)`;
}

/**
 * The lease in seconds. What a claimed webhook may wait, an attempt and storing its result last are shorter together, so
 * that a slow one is not made twice. Emails can take longer, and renew it meanwhile.
 */
export const LEASE_SECONDS = 60;

/**
 * Lets the leases of deliveries that were claimed begin again. Returns the new leases of those that were not lost. As
 * `claimDue`, it changes no indexed column.
 */
export async function renewLeases(db: Queries, claims: Leased[]): Promise<Leased[]> {
  const rows = await db.execute(
    `update delivery_queue q set leased_until = now() + $2 * interval '1 second'
     from json_to_recordset($1::json) as held(id text, lease timestamptz)
     where q.id = held.id and q.leased_until = held.lease returning q.id, q.leased_until`,
    [JSON.stringify(claims.map(({ id, lease }) => ({ id, lease }))), LEASE_SECONDS],
  );
  return rows.map(({ id, leased_until: lease }) => ({ id: String(id), lease: String(lease) }));
}

type Leased = { id: string; lease: string };

/** How many deliveries a process can attempt beside those that it has. */
export type FreeCapacity = {
  /** What their bodies may have together. */
  bytes: number;
  /** Of them, how many emails. */
  mails: number;
  /** For each receiver, and for each tenant, that is not named. */
  perReceiver: number;
  perTenant: number;
  /** For all receivers of a tenant that are not named. */
  perTenantUnknown: number;
  receivers: { tenant: string; receiver: string; free: number }[];
  /** With `mails`, how many it has under way. */
  tenants: { tenant: string; free: number; unknown: number; mails: number }[];
};

/**
 * Reads whether there is work: events to fan out, due deliveries, deliveries of a process that died, expired
 * sessions to announce, files to remove, webhooks that work again. One cheap statement, which an idle service runs each second.
 *
 * Ignores events before the id, deliveries due before the time and first leases that ended before the time in
 * `since`. `at` is the database's clock.
 */
export async function findDueWork(db: Queries, since: WorkSince) {
  const [row] = await db.select(
    `select now() as at,
       exists (select from events where fanned_out_at is null and id >= $1) as events,
       (
         select due_at from delivery_queue where ${isFree} and due_at between $2 and now() order by due_at limit 1
       ) as due_at,
       exists (select from delivery_queue where first_lease_until between $3 and now()) as abandoned,
       exists (
         select from sessions
         where submitted_at is null and expiry_announced_at is null and expires_at <= now()
       ) as sessions,
       exists (select from removals where due_at <= now()) as removals,
       exists (select from webhooks where ${isResumable}) as resumable`,
    [since.event, since.due.toISOString(), since.lease.toISOString()],
  );
  return {
    at: timeOf(row?.at),
    events: row?.events === true,
    dueAt: timeOrNull(row?.due_at),
    abandoned: row?.abandoned === true,
    sessions: row?.sessions === true,
    removals: row?.removals === true,
    resumable: row?.resumable === true,
  };
}

/**
 * Makes up to `limit` deliveries due whose first lease is over, since the process that stored them died.
 * Returns how many.
 */
export async function releaseAbandoned(db: Queries, limit: number): Promise<number> {
  const rows = await db.execute(
    `update delivery_queue set first_lease_until = null, due_at = now()
     where id = any (array(
       select id from delivery_queue where first_lease_until <= now()
       order by first_lease_until limit $1 for update skip locked
     )) and first_lease_until <= now()
     returning id`,
    [limit],
  );
  return rows.length;
}

/**
 * Reads how many deliveries are due, those under way included, and since when the first of them waits that no
 * process has claimed. Counts up to `limit`, so that it costs some milliseconds however long the queue is.
 */
export async function readQueueState(db: Queries, limit: number): Promise<QueueState> {
  const [row] = await db.select(
    `select now() as at,
       (select count(*) from (
         select from delivery_queue where first_lease_until is null and due_at <= now() limit $1
       ) as d) as due,
       (select count(*) from (
         select from delivery_queue where first_lease_until is null and due_at > now() limit $1
       ) as d) as later,
       (
         select due_at from delivery_queue
         where first_lease_until is null and (leased_until is null or leased_until <= now()) and due_at <= now()
         order by due_at limit 1
       ) as oldest`,
    [limit],
  );
  const oldest = timeOrNull(row?.oldest);
  const oldestAgeMs = oldest === null ? 0 : Math.max(0, timeOf(row?.at).getTime() - oldest.getTime());
  return { due: Number(row?.due), later: Number(row?.later), oldestAgeMs };
}

/** `dueAt` is when the first of the due deliveries was due; null if there is none. */

type WorkSince = { event: string; due: Date; lease: Date };

/** `later`: retries, and what is pending for a limit or a circuit breaker. `oldestAgeMs` is 0 if nothing waits. */
type QueueState = { due: number; later: number; oldestAgeMs: number };
