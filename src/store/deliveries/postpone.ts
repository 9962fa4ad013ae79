import { addressKey } from '../../domain/addresses/email-address.ts';
import { because } from '../../domain/delivery/causes.ts';
import { textOrNull, toMillisecond } from '../database/columns.ts';
import type { Queries, Transactions } from '../database/queries.ts';
import { createSlices } from '../database/slices.ts';
import { tenantOf } from './fairness.ts';

/** What a postponed delivery shows as its error. */
export const POSTPONED = because('postponed');

/**
 * How far postponed deliveries lie behind the one that tries the receiver, in seconds: at least longer than an attempt.
 * The farther, the more rarely each is moved while the receiver fails. They are made due when it works.
 */
const LEAST_BEHIND_SECONDS = 15;
const BEHIND_SECONDS = 300;

/**
 * SQL of when the delivery with an id is due that is postponed until `openUntil` and has its last attempt at `end`, or
 * soon after. Spread by the id: a page of them is not due at once, and an update needs no join for that.
 */
export function postponedTo(openUntil: string, id: string, end: string): string {
  const behind = (seconds: number) =>
    `${openUntil} + (1 + abs(hashtext(${id}) % 1000) / 1000.0) * ${seconds} * interval '1 second'`;
  return `least(${behind(BEHIND_SECONDS)}, greatest(${behind(LEAST_BEHIND_SECONDS)}, ${end}))`;
}

/**
 * Postpones what is due to a webhook before its circuit breaker tries it again at `openUntil`: the first
 * delivery until then, the others until after it. What is older than `totalSeconds` afterwards, the time of
 * the retry schedule, keeps its own time; all do if the receiver has answered by then, since nothing would make them due
 * again. Works in slices, so that no lock is held for long.
 */
export async function postponeDeliveries(
  database: Transactions,
  { webhookId, tenant, openUntil, totalSeconds }: Postponement,
): Promise<void> {
  await inSlices(database, { due: '-infinity', id: '' }, async (tx, limit, after) => {
    // Locked until this commits, so that no result notes meanwhile that the receiver has answered: the deliveries that
    // are postponed here would be missed by what makes them due then.
    const failing = await tx.select(
      'select id from webhooks where id = $1 and failing_since is not null for share',
      [webhookId],
    );
    if (failing.length === 0) return null;
    const [row] = await tx.execute(
      `with seen as materialized (
         select id, due_at, (leased_until is null or leased_until <= now())
           and queued_at + $5 * interval '1 second' > $4 as movable
         from (${dueOf('$1')} union all ${dueOf(tenantOf('$1', 'true'))}) as due
         order by due_at, id limit $6
       ),
       moved as (
         update delivery_queue set postponed = true, error = $7, cause = '${POSTPONED.cause}',
           due_at = case when $8 = '' and id = (select id from seen where movable order by due_at, id limit 1)
             then $4 else ${postponedTo('$4::timestamptz', 'id', `queued_at + $5 * interval '1 second'`)} end
         where id = any(array(select id from seen where movable))
           and (leased_until is null or leased_until <= now())
       )
       select count(*) as count, max(due_at)::text as due,
         (select id from seen order by due_at desc, id desc limit 1) as id from seen`,
      [tenant, webhookId, after.due, openUntil.toISOString(), totalSeconds, limit, POSTPONED.error, after.id],
    );
    return Number(row?.count) < limit ? null : { due: String(row?.due), id: String(row?.id) };
  });
}

/** Does a step over and over in transactions of their own, each after what the one before returned; null is the end. */
async function inSlices<After>(
  database: Transactions,
  first: After,
  step: (tx: Queries, limit: number, after: After) => Promise<After | null>,
): Promise<void> {
  const slice = createSlices(database, GROUP);
  let after: After | null = first;
  while (after !== null) {
    const from: After = after;
    after = await slice((tx, limit) => step(tx, limit, from));
  }
}

/**
 * Compares the columns of the index by receivers as one row. Equations would leave the planner the index by due times,
 * too, in which each slice would go through all that is due.
 */
function dueOf(tenant: string): string {
  return `(select id, due_at, leased_until, queued_at from delivery_queue
    where first_lease_until is null and (share, receiver, due_at, id) > (${tenant}, $2, $3, $8)
      and (share, receiver, due_at) < (${tenant}, $2, $4)
    order by share, receiver, due_at, id limit $6)`;
}

/** A webhook that works again and whose postponed deliveries are still to be made due; null if there is none. */
export async function findResumable(db: Queries): Promise<string | null> {
  const [row] = await db.select(`select id from webhooks where ${isResumable} limit 1`);
  return textOrNull(row?.id);
}

/** Makes what was postponed for such a webhook due, in slices. */
export async function resumeDeliveries(database: Transactions & Queries, webhookId: string): Promise<void> {
  await inSlices(database, '', async (tx, limit, after) => {
    const rows = await tx.execute(
      `update delivery_queue set postponed = false, error = null, cause = null, due_at = least(due_at, ${toMillisecond('now()')})
       where id = any(array(
         select id from delivery_queue
         where webhook_id = $1 and first_lease_until is null and id > $2 and postponed
         order by id limit $3 for update skip locked
       ))
       returning id`,
      [webhookId, after, limit],
    );
    const ids = rows.map(({ id }) => String(id));
    return ids.length < limit ? null : (ids.toSorted().at(-1) ?? null);
  });
  await database.execute(`update webhooks set open_until = null where id = $1 and ${isResumable}`, [
    webhookId,
  ]);
}

/** Makes a form's emails to an address that wait for its confirmation due at once; then notify the workers. */
export async function releaseWaitingMail(
  db: Queries,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await db.execute(
    `update delivery_queue set due_at = ${toMillisecond('now()')}
     where form_id = $2 and receiver = $1 and kind = 'owner' and first_lease_until is null
       and leased_until is null and due_at > now()`,
    [addressKey(address), formId],
  );
}

/**
 * SQL, of webhooks whose receivers have answered again after failures: deliveries that were postponed for them are
 * still to be made due.
 */
export const isResumable = 'open_until is not null and failing_since is null';

/** Of one slice: some milliseconds of row locks. */
const GROUP = 1_000;

type Postponement = {
  webhookId: string;
  /** Of its project. What strangers made the webhook get is in another one, and is postponed as well. */
  tenant: string;
  /** When the receiver is tried again. */
  openUntil: Date;
  /** The longest that the retry schedule can last. */
  totalSeconds: number;
};
