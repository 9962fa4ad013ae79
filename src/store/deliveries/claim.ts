import { timeOf } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { type Claim, claimColumns, claimJoins, claimsOfRows } from './claimed.ts';
import { capacityIn, type FreeCapacity, fairOf } from './fairness.ts';
import { isFree, LEASE_SECONDS } from './queue-table.ts';

/**
 * Claims due deliveries, oldest first, at most as many for each receiver and each tenant, as many emails, and as many
 * bytes, as `capacity` says.
 * Other workers do not see them until the lease ends, so a worker that dies leaves its deliveries to them.
 *
 * A claim is one short statement: no lock is held while a receiver is called. It changes no indexed column,
 * so that no index has to be written.
 *
 * Considers `page` deliveries due from `since` on. The next claim may begin at `resumeAt`: skipping what lies
 * before keeps this fast while an old snapshot holds the dead rows of finished deliveries. If `pageFull`,
 * more is due behind the page, which may all belong to busy receivers: see `claimByReceiver`.
 */
export async function claimDue(db: Queries, options: ClaimOptions & { page: number }): Promise<ClaimedPage> {
  const rows = await db.execute(
    `with page as materialized (
       select id, share, receiver, channel, due_at from delivery_queue
       where ${isFree} and due_at >= $1::timestamptz and due_at <= now()
       order by due_at limit $5
     ),
     ${freeCapacity},
     ${fairOf('page', 'due_at, id')},
     ${claimedOfFair}
     select (select count(*) from page) as page_size,
       (select json_agg(distinct share) from page where channel = 'mail') as mail_tenants,
       coalesce(
         (select min(due_at) from page where id not in (select id from taken)),
         case when (select count(*) from page) < $5 then now() else (select max(due_at) from page) end
       ) as resume_at,
       ${claimColumns}
     from (select) as always left join claimed c on true ${claimJoins}`,
    [...paramsOf(options), options.page],
  );
  const [first] = rows;
  const claims = claimsOfRows(rows);
  return {
    claims,
    resumeAt: timeOf(first?.resume_at),
    pageFull: Number(first?.page_size) >= options.page,
    mailTenants: Array.isArray(first?.mail_tenants) ? first.mail_tenants.map(String) : [],
    more: claims.length < Number(first?.page_size),
  };
}

/**
 * As `claimDue`, but asks receiver by receiver in the order of their tenants and names, `RECEIVERS_A_STEP`
 * from the one after `after` on: its cost does not grow with the length of any queue. A tenant that has its part of the
 * capacity is passed over; of one that has its part for receivers that are not named, only the named ones are asked.
 *
 * Emails of the tenants `mailTenants` are passed over: a page has them.
 *
 * `last` is the receiver to go on after; null when the round is complete.
 */
export async function claimByReceiver(
  db: Queries,
  options: ClaimOptions & { after: ReceiverName | null; mailTenants: string[] },
): Promise<ClaimedStep> {
  const rows = await db.execute(
    `with recursive ${freeCapacity},
     walk as (
       (select share, receiver from delivery_queue d
        where first_lease_until is null and (share, receiver) > ($5, $6) and ${mayBeSent}
        order by share, receiver limit 1)
       union all
       select n.share, n.receiver from walk left join free_tenants s on s.tenant = walk.share
         cross join lateral (
           select d.share, d.receiver from delivery_queue d
           where d.first_lease_until is null
             and (d.share, d.receiver) > (walk.share, case when ${isFull} then chr(1114111) else walk.receiver end)
             and ${mayBeSent}
           order by d.share, d.receiver limit 1
         ) as n
     ),
     step as materialized (select share, receiver from walk limit ${RECEIVERS_A_STEP}),
     asked as materialized (
       select step.share, step.receiver, r.free from step
         left join free_tenants s on s.tenant = step.share
         left join free_receivers r on r.tenant = step.share and r.receiver = step.receiver
       where ${isFull} is not true
       union all
       select r.tenant, r.receiver, r.free from free_receivers r join free_tenants s on s.tenant = r.tenant
       where ${isFull} and s.free > 0
     ),
     found as (
       select due.id, asked.share, asked.receiver, due.channel, due.due_at
       from asked cross join capacity
         left join free_tenants s on s.tenant = asked.share
         cross join lateral (
           select id, channel, due_at from delivery_queue d
           where ${isFree} and d.share = asked.share and d.receiver = asked.receiver
             and d.due_at >= $1::timestamptz and d.due_at <= now()
           order by d.due_at
           limit greatest(least(coalesce(asked.free, "perReceiver"), coalesce(s.free, "perTenant")), 0)
         ) as due
     ),
     ${fairOf('found', 'due_at, id')},
     ${claimedOfFair}
     select (select count(*) from step) as receivers,
       (select share from step order by share desc limit 1) as last_share,
       (select receiver from step order by share desc, receiver desc limit 1) as last_receiver,
       ${claimColumns}
     from (select) as always left join claimed c on true ${claimJoins}`,
    [...paramsOf(options), options.after?.tenant ?? '', options.after?.receiver ?? '', options.mailTenants],
  );
  const [first] = rows;
  const complete = Number(first?.receivers) < RECEIVERS_A_STEP;
  const last = { tenant: String(first?.last_share), receiver: String(first?.last_receiver) };
  return { claims: claimsOfRows(rows), last: complete ? null : last };
}

/** One or two milliseconds of index probes. */
const RECEIVERS_A_STEP = 100;

/** The first four parameters of claims. */
function paramsOf({ since, capacity, limit }: ClaimOptions): unknown[] {
  return [since.toISOString(), JSON.stringify(capacity), limit, LEASE_SECONDS];
}

const freeCapacity = capacityIn('$2');

/** A tenant that may have no more claims for receivers that are not named. */
const isFull = '(s.free <= 0 or s.unknown <= 0)';

/** Of the rows `d`: emails of other tenants than those that the page has, if any may be sent. */
const mayBeSent = `(d.channel <> 'mail' or ((select "mails" from capacity) > 0 and d.share <> all($7::text[])))`;

/**
 * Claims the first of the `fair` deliveries: as many as have no more bytes together than there is room for, and at least
 * one. Tenants take turns, and the receivers of each.
 */
const claimedOfFair = `picked as materialized (
  select d.id, d.event_id, d.channel, d.mail, tenant_place, place, fair.due_at
  from fair cross join capacity join delivery_queue d on d.id = fair.id
  where (fair.channel <> 'mail' or channel_place <= "mails") and ${isFree} and d.due_at <= now()
  order by tenant_place, place, fair.due_at, d.id limit $3
  for update of d skip locked
), taken as materialized (
  select id, body, traceparent from capacity, (
    select p.id, e.traceparent, case when p.channel = 'webhook' then e.body end as body,
      row_number() over in_order as number,
      sum(coalesce(octet_length(case when p.channel = 'webhook' then e.body else p.mail::text end), 0)) over in_order
        as total_bytes
    from picked p left join events e on e.id = p.event_id
    window in_order as (order by tenant_place, place, due_at, p.id)
  ) as sized
  where number = 1 or total_bytes <= capacity.bytes
), claimed as (
  update delivery_queue d
  set leased_until = now() + $4 * interval '1 second'
  from taken t
  where d.id = t.id
  returning d.*, t.body, t.traceparent
)`;

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

export type ClaimOptions = { since: Date; capacity: FreeCapacity; limit: number };

/** `more`: of the page not all was claimed, for want of capacity, or for the limit. */
export type ClaimedPage = {
  claims: Claim[];
  resumeAt: Date;
  pageFull: boolean;
  /** The tenants that the emails of the page belong to. */
  mailTenants: string[];
  more: boolean;
};
export type ClaimedStep = { claims: Claim[]; last: ReceiverName | null };
export type ReceiverName = { tenant: string; receiver: string };
