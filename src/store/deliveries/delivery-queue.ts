import { timeOf } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { type Claim, claimColumns, claimJoins, claimsOf } from './claim.ts';
import { type FreePlaces, isFree, LEASE_SECONDS, placesIn } from './delivery-queue-table.ts';

/**
 * Claims due deliveries, oldest first, at most as many for each receiver and each share, and as many bytes, as
 * `places` says.
 * Other workers do not see them until the lease ends, so a worker that dies leaves its deliveries to them.
 *
 * A claim is one short statement: no lock is held while a receiver is called. It changes no indexed column,
 * so that no index has to be written.
 *
 * Considers `page` deliveries due from `since` on. The next claim may begin at `resumeAt`: skipping what lies
 * before keeps this fast while an old snapshot holds the dead rows of finished deliveries. If `pageFull`,
 * more is due behind the page, which may all belong to busy receivers: see `claimInTurn`.
 */
export async function claimDue(db: Queries, options: ClaimOptions & { page: number }): Promise<ClaimedPage> {
  const rows = await db.execute(
    `with page as materialized (
       select id, share, receiver, due_at from delivery_queue
       where ${isFree} and due_at >= $1::timestamptz and due_at <= now()
       order by due_at limit $5
     ),
     ${freePlaces},
     ranked as (
       select page.*, row_number() over (partition by share, receiver order by due_at, id) as place from page
     ),
     fitting as (
       select ranked.*, r.receiver is null as is_unknown,
         row_number() over (partition by ranked.share order by place, due_at) as share_place,
         row_number() over (partition by ranked.share, r.receiver is null order by place, due_at) as unknown_place
       from ranked cross join places
         left join free_receivers r on r.share = ranked.share and r.receiver = ranked.receiver
       where place <= coalesce(r.free, "perReceiver")
     ),
     picked as materialized (
       select ${pickedColumns}, fitting.place, fitting.due_at
       from fitting cross join places join delivery_queue d on d.id = fitting.id
         left join free_shares s on s.share = fitting.share
       where ${fitsShare} and ${isFree} and d.due_at <= now()
       order by fitting.place, fitting.due_at limit $3
       for update of d skip locked
     ),
     ${takenInOrderOf('p.place, p.due_at')}
     select (select count(*) from page) as page_size,
       coalesce(
         (select min(due_at) from page where id not in (select id from taken)),
         case when (select count(*) from page) < $5 then now() else (select max(due_at) from page) end
       ) as resume_at,
       ${claimColumns}
     from (select) as always left join claimed c on true ${claimJoins}`,
    [options.since.toISOString(), JSON.stringify(options.places), options.limit, LEASE_SECONDS, options.page],
  );
  const [first] = rows;
  const claims = claimsOf(rows);
  return {
    claims,
    resumeAt: timeOf(first?.resume_at),
    pageFull: Number(first?.page_size) >= options.page,
    more: claims.length < Number(first?.page_size),
  };
}

/**
 * As `claimDue`, but asks receiver by receiver in the order of their shares and names, `RECEIVERS_A_TURN`
 * from the one after `after` on: its cost does not grow with the length of any queue. A share that has its part of the
 * places is passed over; of one that has its part for receivers that are not named, only the named ones are asked.
 *
 * `last` is the receiver to go on after; null when the round is complete.
 */
export async function claimInTurn(
  db: Queries,
  options: ClaimOptions & { after: Turn | null },
): Promise<ClaimedTurn> {
  const rows = await db.execute(
    `with recursive ${freePlaces},
     walk as (
       (select share, receiver from delivery_queue
        where first_lease_until is null and (share, receiver) > ($5, $6) order by share, receiver limit 1)
       union all
       select n.share, n.receiver from walk left join free_shares s on s.share = walk.share
         cross join lateral (
           select d.share, d.receiver from delivery_queue d
           where d.first_lease_until is null
             and (d.share, d.receiver) > (walk.share, case when ${isFull} then chr(1114111) else walk.receiver end)
           order by d.share, d.receiver limit 1
         ) as n
     ),
     turn as materialized (select share, receiver from walk limit ${RECEIVERS_A_TURN}),
     asked as materialized (
       select turn.share, turn.receiver, r.free from turn
         left join free_shares s on s.share = turn.share
         left join free_receivers r on r.share = turn.share and r.receiver = turn.receiver
       where ${isFull} is not true
       union all
       select r.share, r.receiver, r.free from free_receivers r join free_shares s on s.share = r.share
       where ${isFull} and s.free > 0
     ),
     found as (
       select due.id, asked.share, due.due_at, asked.free is null as is_unknown from asked cross join places
         left join free_shares s on s.share = asked.share
         cross join lateral (
           select id, due_at from delivery_queue d
           where ${isFree} and d.share = asked.share and d.receiver = asked.receiver
             and d.due_at >= $1::timestamptz and d.due_at <= now()
           order by d.due_at
           limit greatest(least(coalesce(asked.free, "perReceiver"), coalesce(s.free, "perShare")), 0)
         ) as due
     ),
     picked as materialized (
       select ${pickedColumns}, share_place from (
         select found.*, row_number() over (partition by share order by due_at) as share_place,
           row_number() over (partition by share, is_unknown order by due_at) as unknown_place
         from found
       ) as ranked cross join places join delivery_queue d on d.id = ranked.id
         left join free_shares s on s.share = ranked.share
       where ${fitsShare} and ${isFree} and d.due_at <= now()
       order by share_place limit $3
       for update of d skip locked
     ),
     ${takenInOrderOf('p.share_place')}
     select (select count(*) from turn) as receivers,
       (select share from turn order by share desc limit 1) as last_share,
       (select receiver from turn order by share desc, receiver desc limit 1) as last_receiver,
       ${claimColumns}
     from (select) as always left join claimed c on true ${claimJoins}`,
    [
      options.since.toISOString(),
      JSON.stringify(options.places),
      options.limit,
      LEASE_SECONDS,
      options.after?.share ?? '',
      options.after?.receiver ?? '',
    ],
  );
  const [first] = rows;
  const complete = Number(first?.receivers) < RECEIVERS_A_TURN;
  const last = { share: String(first?.last_share), receiver: String(first?.last_receiver) };
  return { claims: claimsOf(rows), last: complete ? null : last };
}

/** One or two milliseconds of index probes. */
const RECEIVERS_A_TURN = 100;

const freePlaces = placesIn('$2');

/** A share that may have no more claims for receivers that are not named. */
const isFull = '(s.free <= 0 or s.unknown <= 0)';

const fitsShare = `share_place <= coalesce(s.free, "perShare")
  and (not is_unknown or unknown_place <= coalesce(s.unknown, "perShareUnknown"))`;

/** Of the rows `d`: what they are measured by. */
const pickedColumns = 'd.id, d.event_id, d.channel, d.mail';

/**
 * Takes the first of the `picked` ones, as many as have no more bytes together than there is room for, and at
 * least one.
 */
function takenInOrderOf(order: string): string {
  return `taken as materialized (
  select id, body, traceparent from places, (
    select p.id, e.traceparent, case when p.channel = 'webhook' then e.body end as body,
      row_number() over in_order as number,
      sum(coalesce(octet_length(case when p.channel = 'webhook' then e.body else p.mail::text end), 0)) over in_order
        as total_bytes
    from picked p left join events e on e.id = p.event_id
    window in_order as (order by ${order}, p.id)
  ) as sized
  where number = 1 or total_bytes <= places.bytes
), claimed as (
  update delivery_queue d
  set leased_until = now() + $4 * interval '1 second'
  from taken t
  where d.id = t.id
  returning d.*, t.body, t.traceparent
)`;
}

export type ClaimOptions = { since: Date; places: FreePlaces; limit: number };

/** `more`: of the page not all was claimed, for want of places, or for the limit. */
export type ClaimedPage = { claims: Claim[]; resumeAt: Date; pageFull: boolean; more: boolean };
export type ClaimedTurn = { claims: Claim[]; last: Turn | null };
export type Turn = { share: string; receiver: string };
