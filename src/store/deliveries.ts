import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { addressKey } from '../domain/email-address.ts';
import { smallestIdAt } from '../domain/ids.ts';
import { id, type JsonObject, json, text, time, toMillisecond } from './database/columns.ts';
import { type EntityManager, type Page, type PageRequest, pageOf, type Queries } from './database/queries.ts';
import { EventEntity, type NewEvent } from './events.ts';

/** One event (or one mail) on its way to one receiver. */
export const DeliveryEntity = defineEntity({
  name: 'Delivery',
  tableName: 'deliveries',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    /** Null for mails without an event, such as the one about a webhook that was turned off. */
    eventId: id().strictNullable(),
    webhookId: id().strictNullable(),
    submissionId: id().strictNullable(),
    channel: p.enum(['webhook', 'mail']).columnType('text'),
    /** A webhook's event type, or what a mail is: `owner`, `confirmation`, `autoresponse`, `recipient_confirmation` … */
    kind: text(),
    /** The webhook's id, or the mail address. Claims are shared fairly between receivers. */
    receiver: text().collation('C'),
    /** Where a webhook delivery goes, for replays too; null for mail. */
    url: text().strictNullable(),
    /** What a mail says; null for webhooks, whose body is the event's. */
    mail: json<JsonObject>().strictNullable(),
    status: p.enum(['pending', 'delivered', 'failed']).columnType('text'),
    attemptCount: p.integer().default(0),
    /** Attempts since it was made or last replayed: its place in the retry schedule. */
    step: p.integer().default(0),
    /** The next attempt, while pending. */
    dueAt: time().strictNullable(),
    /** When the lease of the process that attempts it ends. In no index: see `claimDue`. */
    leasedUntil: time().strictNullable(),
    createdAt: time(),
    lastAttemptAt: time().strictNullable(),
    deliveredAt: time().strictNullable(),
    /** Of the last attempt. */
    responseStatus: p.integer().strictNullable(),
    error: text().strictNullable(),
  },
  indexes: [
    { name: 'deliveries_due', properties: ['dueAt'], where: "status = 'pending'" },
    { name: 'deliveries_due_by_receiver', properties: ['receiver', 'dueAt'], where: "status = 'pending'" },
    {
      name: 'deliveries_by_webhook',
      properties: ['webhookId', 'id'],
      where: 'webhook_id is not null',
    },
    { name: 'deliveries_by_form', properties: ['formId', 'id'] },
    { name: 'deliveries_by_event', properties: ['eventId'], where: 'event_id is not null' },
    { name: 'deliveries_by_submission', properties: ['submissionId'], where: 'submission_id is not null' },
    { name: 'deliveries_finished', properties: ['createdAt'], where: "status <> 'pending'" },
  ],
});

export type Delivery = InferEntity<typeof DeliveryEntity>;

/** One attempt of a delivery. */
export const AttemptEntity = defineEntity({
  name: 'Attempt',
  tableName: 'attempts',
  properties: {
    id: id().primary(),
    deliveryId: id(),
    /** 1, 2, 3 … within the delivery, over replays. */
    number: p.integer(),
    status: p.enum(['delivered', 'failed']).columnType('text'),
    responseStatus: p.integer().strictNullable(),
    error: text().strictNullable(),
    /** The first 2 KiB of the receiver's answer. */
    responseBody: text().strictNullable(),
    durationMs: p.integer(),
    startedAt: time(),
  },
  indexes: [{ name: 'attempts_by_delivery', properties: ['deliveryId', 'number'] }],
});

export type Attempt = InferEntity<typeof AttemptEntity>;

/** Lists a webhook's or a form's deliveries, newest first. A page ends early at `MAX_PAGE_ATTEMPTS`. */
export async function listDeliveries(
  db: Queries,
  filter: DeliveryFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<LoggedDelivery>> {
  const where = { ...filter, ...(cursor !== undefined && { id: { $lt: cursor } }) };
  return db.read(async (em) => {
    const found = await em.find(DeliveryEntity, where, {
      ...withoutMail,
      orderBy: { id: 'desc' },
      limit: limit + 1,
    });
    const { items, nextCursor } = endedByAttempts(pageOf(found, limit));
    return { items: await addAttempts(em, items), nextCursor };
  });
}

/** Finds a delivery of a project. */
export async function findDelivery(
  db: Queries,
  projectId: string,
  deliveryId: string,
): Promise<LoggedDelivery | null> {
  return db.read(async (em) => {
    const found = await em.find(DeliveryEntity, { id: deliveryId, projectId }, withoutMail);
    const [logged] = await addAttempts(em, found);
    return logged ?? null;
  });
}

/** A mail can be long, and no list shows it. */
const withoutMail = { exclude: ['mail'] } as const;

/** Ends a page before the delivery with which it would have too many attempts. */
function endedByAttempts(page: Page<DeliverySummary>): Page<DeliverySummary> {
  let attempts = 0;
  const end = page.items.findIndex(({ attemptCount }, index) => {
    attempts += Math.min(attemptCount, MAX_ATTEMPTS);
    return attempts > MAX_PAGE_ATTEMPTS && index > 0;
  });
  if (end === -1) return page;
  const items = page.items.slice(0, end);
  return { items, nextCursor: items.at(-1)?.id ?? null };
}

async function addAttempts(em: EntityManager, deliveries: DeliverySummary[]): Promise<LoggedDelivery[]> {
  const isShort = ({ attemptCount }: DeliverySummary) => attemptCount <= MAX_ATTEMPTS;
  const long = deliveries.filter((delivery) => !isShort(delivery));
  const attempts = await em.find(
    AttemptEntity,
    {
      $or: [
        { deliveryId: { $in: deliveries.filter(isShort).map(({ id }) => id) } },
        ...long.map(({ id, attemptCount }) => ({
          deliveryId: id,
          number: { $gt: attemptCount - MAX_ATTEMPTS },
        })),
      ],
    },
    { orderBy: { deliveryId: 'asc', number: 'asc' } },
  );
  const byDelivery = Map.groupBy(attempts, (attempt) => attempt.deliveryId);
  return deliveries.map((delivery) => ({ delivery, attempts: byDelivery.get(delivery.id) ?? [] }));
}

/**
 * Makes a finished webhook delivery pending again, due at once and at the beginning of the schedule.
 * Event id, body and URL stay. False if it is pending, or its webhook or event is gone.
 */
export async function replayDelivery(
  db: Queries,
  { projectId, id }: { projectId: string; id: string },
): Promise<boolean> {
  const rows = await db.execute(
    `update deliveries set ${asReplayed}
     where id = $1 and project_id = $2 and status <> 'pending' and ${replayable}
     returning id`,
    [id, projectId],
  );
  return rows.length > 0;
}

/**
 * Makes the failed deliveries of a webhook pending again, those made in `[createdAfter, createdBefore)`,
 * and returns how many. Works in groups, so that no lock is held for long: outside transactions only.
 */
export async function replayFailedDeliveries(db: Queries, range: ReplayRange): Promise<number> {
  const { webhookId, createdAfter, createdBefore } = range;
  const last = smallestIdAt('dlv', createdBefore?.getTime() ?? Number.POSITIVE_INFINITY);
  let from = smallestIdAt('dlv', createdAfter?.getTime() ?? 0);
  for (let count = 0; ; ) {
    const rows = await db.execute(
      `update deliveries set ${asReplayed}
       where id in (
         select id from deliveries
         where webhook_id = $1 and id >= $2 and id < $3 and status = 'failed' and ${replayable}
         order by id limit ${REPLAY_GROUP} for update skip locked
       )
       returning id`,
      [webhookId, from, last],
    );
    count += rows.length;
    if (rows.length < REPLAY_GROUP) return count;
    from = rows.reduce((most, row) => (String(row.id) > most ? String(row.id) : most), from);
  }
}

/** Writes an event for one webhook alone, together with its delivery. Call in a transaction, then notify the workers. */
export async function insertTestDelivery(
  db: Queries,
  { event, delivery }: { event: NewEvent; delivery: { id: string; webhookId: string; url: string } },
): Promise<void> {
  await db.write(async (em) => {
    await em.insert(EventEntity, { ...event, fannedOutAt: event.createdAt });
    await em.insert(DeliveryEntity, {
      id: delivery.id,
      projectId: event.projectId,
      formId: event.formId,
      eventId: event.id,
      webhookId: delivery.webhookId,
      submissionId: null,
      channel: 'webhook',
      kind: event.type,
      receiver: delivery.webhookId,
      url: delivery.url,
      mail: null,
      status: 'pending',
      dueAt: event.createdAt,
      createdAt: event.createdAt,
    });
  });
}

/** Deletes the pending deliveries of a webhook. */
export async function dropPendingDeliveries(db: Queries, webhookId: string): Promise<void> {
  // Named as the receiver too, for the index of pending deliveries.
  await db.write((em) =>
    em.nativeDelete(DeliveryEntity, { receiver: webhookId, webhookId, status: 'pending' }),
  );
}

/** Makes a form's mails to an address that wait for its confirmation due at once; then notify the workers. */
export async function releaseWaitingMail(
  db: Queries,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await db.execute(
    `update deliveries set due_at = ${toMillisecond('now()')}
     where receiver = $1 and form_id = $2 and kind = 'owner' and status = 'pending'
       and leased_until is null and due_at > now()`,
    [addressKey(address), formId],
  );
}

/** Removes up to `limit` finished deliveries that were made `days` ago, with their attempts. Returns how many. */
export async function purgeDeliveries(db: Queries, days: number, limit: number): Promise<number> {
  const rows = await db.execute(
    removalOfDeliveries(
      `select id from deliveries
       where status <> 'pending' and created_at < now() - make_interval(days => $1)
       order by created_at limit $2 for update skip locked`,
    ),
    [days, limit],
  );
  return rows.length;
}

/** The statement that removes the deliveries that `ids` selects, with their attempts, and returns their ids. */
export function removalOfDeliveries(ids: string): string {
  return `with gone as materialized (${ids}),
    attempts_gone as (delete from attempts where delivery_id in (select id from gone))
    delete from deliveries where id in (select id from gone) returning id`;
}

const asReplayed = `status = 'pending', due_at = ${toMillisecond('now()')}, leased_until = null, step = 0,
  delivered_at = null, error = null`;

const replayable = `channel = 'webhook'
  and exists (select from webhooks w where w.id = deliveries.webhook_id and w.deleted_at is null)
  and exists (select from events e where e.id = deliveries.event_id)`;

/** Rows of one statement: some milliseconds of row locks. */
const REPLAY_GROUP = 1000;

/** How many attempts of one delivery are shown, the last ones: it can be replayed any number of times. */
const MAX_ATTEMPTS = 100;

/** An attempt holds up to 2 KiB of an answer, three times that in UTF-8; gRPC clients take 4 MiB by default. */
const MAX_PAGE_ATTEMPTS = 500;

/** A delivery as the log shows it, with its attempts, oldest first. */
export type LoggedDelivery = { delivery: DeliverySummary; attempts: Attempt[] };
type DeliverySummary = Pick<Delivery, Exclude<Extract<keyof Delivery, string>, 'mail'>>;

/** Names a webhook or a form, or no index is used. */
export type DeliveryFilter = { webhookId?: string; formId?: string; status?: Delivery['status'] };

export type ReplayRange = { webhookId: string; createdAfter?: Date; createdBefore?: Date };
