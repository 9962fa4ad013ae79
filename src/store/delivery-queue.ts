import { timeOf, timeOrNull } from './database/columns.ts';
import type { Queries, Row } from './database/queries.ts';
import type { SigningSecrets } from './webhook-secrets.ts';
import type { Webhook } from './webhooks.ts';

/**
 * Reads whether there is work: events to fan out, due deliveries, expired sessions to announce. One cheap
 * statement, which an idle service runs each second.
 *
 * Ignores events before the id and deliveries due before the time in `since`. `at` is the database's clock.
 */
export async function findDueWork(db: Queries, since: { event: string; due: Date }): Promise<DueWork> {
  const [row] = await db.select(
    `select now() as at,
       exists (select from events where fanned_out_at is null and id >= $1) as events,
       (
         select due_at from deliveries where ${isFree} and due_at between $2 and now() order by due_at limit 1
       ) as due_at,
       exists (
         select from sessions
         where submitted_at is null and expiry_announced_at is null and expires_at <= now()
       ) as sessions`,
    [since.event, since.due.toISOString()],
  );
  return {
    at: timeOf(row?.at),
    events: row?.events === true,
    dueAt: timeOrNull(row?.due_at),
    sessions: row?.sessions === true,
  };
}

/**
 * Claims due deliveries, oldest first, at most `perReceiver` (less what `busy` says) for one receiver. Other
 * workers do not see them until the lease ends, so a worker that dies leaves its deliveries to them.
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
       select id, receiver, due_at from deliveries
       where ${isFree} and due_at >= $1::timestamptz and due_at <= now()
       order by due_at limit $6
     ),
     ${busyReceivers},
     ranked as (
       select page.*, row_number() over (partition by receiver order by due_at, id) as place from page
     ),
     picked as materialized (
       select d.id from ranked join deliveries d on d.id = ranked.id
         left join busy on busy.receiver = ranked.receiver
       where ranked.place <= coalesce(busy.free, $3) and ${isFree} and d.due_at <= now()
       order by ranked.place, ranked.due_at limit $4
       for update of d skip locked
     ),
     ${claimed}
     select (select count(*) from page) as page_size,
       coalesce(
         (select min(due_at) from page where id not in (select id from picked)),
         case when (select count(*) from page) < $6 then now() else (select max(due_at) from page) end
       ) as resume_at,
       ${claimColumns}
     from (select) as always left join claimed c on true ${claimJoins}`,
    [
      options.since.toISOString(),
      JSON.stringify(options.busy),
      options.perReceiver,
      options.limit,
      LEASE_SECONDS,
      options.page,
    ],
  );
  const [first] = rows;
  return {
    claims: claimsOf(rows),
    resumeAt: timeOf(first?.resume_at),
    pageFull: Number(first?.page_size) >= options.page,
  };
}

/**
 * As `claimDue`, but asks receiver by receiver in the order of their names, `RECEIVERS_A_TURN` from the
 * one after `after` on: its cost does not grow with the length of any receiver's queue.
 *
 * `last` is the receiver to go on after, or an empty text when the round is complete.
 */
export async function claimInTurn(
  db: Queries,
  options: ClaimOptions & { after: string },
): Promise<ClaimedTurn> {
  const rows = await db.execute(
    `with recursive walk as (
       (select receiver from deliveries where status = 'pending' and receiver > $6 order by receiver limit 1)
       union all
       select (select d.receiver from deliveries d where d.status = 'pending' and d.receiver > walk.receiver
               order by d.receiver limit 1)
       from walk where walk.receiver is not null
     ),
     turn as materialized (select receiver from walk where receiver is not null limit ${RECEIVERS_A_TURN}),
     ${busyReceivers},
     picked as materialized (
       select due.id from turn left join busy on busy.receiver = turn.receiver
         cross join lateral (
           select id from deliveries d
           where ${isFree} and d.receiver = turn.receiver
             and d.due_at >= $1::timestamptz and d.due_at <= now()
           order by d.due_at limit greatest(coalesce(busy.free, $3), 0)
           for update skip locked
         ) as due
       limit $4
     ),
     ${claimed}
     select (select count(*) from turn) as receivers, (select max(receiver) from turn) as last, ${claimColumns}
     from (select) as always left join claimed c on true ${claimJoins}`,
    [
      options.since.toISOString(),
      JSON.stringify(options.busy),
      options.perReceiver,
      options.limit,
      LEASE_SECONDS,
      options.after,
    ],
  );
  const [first] = rows;
  const complete = Number(first?.receivers) < RECEIVERS_A_TURN;
  return { claims: claimsOf(rows), last: complete ? '' : String(first?.last) };
}

/** The lease: well above the longest attempt, so that a slow one is not made twice. */
const LEASE_SECONDS = 60;

/** One or two milliseconds of index probes. */
const RECEIVERS_A_TURN = 100;

/** Pending and not leased. */
const isFree = `status = 'pending' and (leased_until is null or leased_until <= now())`;

const busyReceivers = `busy as materialized (
  select * from json_to_recordset($2::json) as b(receiver text, free int)
)`;

/** By an array, since a join is planned as a scan of the whole table while that is small. */
const claimed = `claimed as (
  update deliveries d
  set leased_until = now() + $5 * interval '1 second'
  where d.id = any (array(select id from picked))
  returning d.*
)`;

const claimColumns = `c.id, c.project_id, c.form_id, c.event_id, c.webhook_id, c.channel, c.kind, c.receiver, c.url,
  c.mail, c.step, c.leased_until, e.body, w.id as found_webhook, w.active, w.keyless, w.secret, w.next_secret,
  w.next_secret_at, w.previous_secret, w.previous_secret_until`;

const claimJoins = `left join events e on e.id = c.event_id and c.channel = 'webhook'
  left join webhooks w on w.id = c.webhook_id and w.deleted_at is null`;

function claimsOf(rows: Row[]): Claim[] {
  return rows.flatMap((row) => {
    if (typeof row.id !== 'string') return [];
    return {
      id: row.id,
      lease: String(row.leased_until),
      projectId: String(row.project_id),
      formId: String(row.form_id),
      kind: String(row.kind),
      receiver: String(row.receiver),
      step: Number(row.step),
      content: row.channel === 'mail' ? { channel: 'mail', mail: row.mail } : webhookContent(row),
    };
  });
}

function webhookContent(row: Row): WebhookContent {
  return {
    channel: 'webhook',
    url: String(row.url),
    eventId: String(row.event_id),
    body: textOrNull(row.body),
    webhook:
      typeof row.found_webhook !== 'string'
        ? null
        : {
            id: row.found_webhook,
            active: row.active === true,
            keyless: row.keyless === true,
            secret: String(row.secret),
            nextSecret: textOrNull(row.next_secret),
            nextSecretAt: timeOrNull(row.next_secret_at),
            previousSecret: textOrNull(row.previous_secret),
            previousSecretUntil: timeOrNull(row.previous_secret_until),
          },
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** `dueAt` is when the first of the due deliveries was due; null if there is none. */
export type DueWork = { at: Date; events: boolean; dueAt: Date | null; sessions: boolean };

export type ClaimOptions = {
  since: Date;
  /** Receivers with deliveries under way in this process, and how many more each may have. */
  busy: { receiver: string; free: number }[];
  perReceiver: number;
  limit: number;
};

export type ClaimedPage = { claims: Claim[]; resumeAt: Date; pageFull: boolean };
export type ClaimedTurn = { claims: Claim[]; last: string };

/** A delivery to make. */
export type Claim = {
  id: string;
  /** Distinguishes this claim from a later one, for `settleDeliveries`. */
  lease: string;
  projectId: string;
  formId: string;
  kind: string;
  receiver: string;
  /** Attempts since it was made or replayed. */
  step: number;
  content: WebhookContent | { channel: 'mail'; mail: unknown };
};

export type WebhookContent = {
  channel: 'webhook';
  url: string;
  eventId: string;
  /** Null if the event is gone. */
  body: string | null;
  /** Null if it was deleted. Secrets are sealed. */
  webhook: ClaimedWebhook | null;
};

export type ClaimedWebhook = Pick<Webhook, 'id' | 'active' | 'keyless'> & SigningSecrets;
