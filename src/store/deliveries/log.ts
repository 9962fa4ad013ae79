import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, keysWithout, rowsOf, text, time, timeOrNull } from '../database/columns.ts';
import { type Page, type PageRequest, pageOf, type Queries, type Row } from '../database/queries.ts';
import { pendingWhere, propertiesOfDelivery } from './queue-table.ts';

/** The log: a delivery that is finished. Its rows never change; a replay takes one back into the queue. */
export const DeliveryEntity = defineEntity({
  name: 'Delivery',
  tableName: 'deliveries',
  properties: {
    ...propertiesOfDelivery(),
    status: p.enum(['delivered', 'failed']).columnType('text'),
    deliveredAt: time().strictNullable(),
    /** The last attempt if it succeeded; failed ones are rows of their own. */
    attemptId: id().strictNullable(),
    durationMs: p.integer().strictNullable(),
    responseBody: text().strictNullable(),
  },
  indexes: [
    {
      name: 'deliveries_by_webhook',
      properties: ['webhookId', 'id'],
      where: 'webhook_id is not null',
    },
    { name: 'deliveries_by_form', properties: ['formId', 'id'] },
    { name: 'deliveries_by_event', properties: ['eventId'], where: 'event_id is not null' },
    {
      name: 'deliveries_failed',
      properties: ['webhookId', 'id'],
      where: "status = 'failed' and webhook_id is not null",
    },
    { name: 'deliveries_failed_by_form', properties: ['formId', 'id'], where: "status = 'failed'" },
  ],
});

/** A failed attempt of a delivery. */
export const AttemptEntity = defineEntity({
  name: 'Attempt',
  tableName: 'attempts',
  properties: {
    id: id().primary(),
    deliveryId: id(),
    /** 1, 2, 3 … within the delivery, over replays. */
    number: p.integer(),
    /** Successful ones are here once their delivery was replayed. */
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

type Attempt = InferEntity<typeof AttemptEntity>;

/**
 * Lists a webhook's or a form's deliveries, pending and finished ones, newest first. A page ends early at
 * `MAX_PAGE_ATTEMPTS`.
 */
export async function listDeliveries(
  db: Queries,
  filter: DeliveryFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<LoggedDelivery>> {
  const { status } = filter;
  const [column, value] =
    'webhookId' in filter ? ['webhook_id', filter.webhookId] : ['form_id', filter.formId];
  const params: unknown[] = [value, limit + 1];
  const before = cursor === undefined ? '' : ` and id < $${params.push(cursor)}`;
  const of = `${column} = $1${before}`;
  const finished = status === undefined ? of : `${of} and status = '${status}'`;
  const found = await findNewest(db, params, {
    ...((status ?? 'pending') === 'pending' && { pending: of }),
    ...(status !== 'pending' && { finished }),
  });
  const { items, nextCursor } = endedByAttempts(pageOf(found, limit));
  return { items: await addAttempts(db, items), nextCursor };
}

/** Lists up to `limit` deliveries of a submission's events, newest first, without their attempts. */
export async function listSubmissionDeliveries(
  db: Queries,
  submissionId: string,
  limit: number,
): Promise<Delivery[]> {
  const of = 'event_id = any(array(select id from events where submission_id = $1))';
  const found = await findNewest(db, [submissionId, limit], { pending: of, finished: of });
  return found.map(({ delivery }) => delivery);
}

/** What became of the deliveries of events, by event. Those that were removed are missing. */
export async function listEventDeliveries(db: Queries, eventIds: string[]): Promise<EventDelivery[]> {
  if (eventIds.length === 0) return [];
  const of = 'event_id = any($1)';
  const rows = await db.select(
    `select ${notifications.columns} from deliveries where ${of}
     union all ${pendingWhere(of, `event_id, 'pending', null::timestamptz, error, cause`)}`,
    [eventIds],
  );
  return rows.map(notifications.map);
}

const notifications = rowsOf(DeliveryEntity, ['eventId', 'status', 'deliveredAt', 'error', 'cause']);

/** `error` is why it failed, or what it waits for. */
export type EventDelivery = ReturnType<typeof notifications.map>;

/** The newest `$2` of the deliveries that fulfil conditions; in parts that each have an index for the order. */
async function findNewest(
  db: Queries,
  params: unknown[],
  { pending, finished }: { pending?: string; finished?: string },
): Promise<Summary[]> {
  const newest = 'order by id desc limit $2';
  const leases = pending === undefined ? [] : ['null', 'not null'];
  const selections = leases.map(
    (lease) => `${pendingColumns} from delivery_queue where first_lease_until is ${lease} and ${pending}`,
  );
  if (finished !== undefined) selections.push(`${finishedColumns} from deliveries where ${finished}`);
  const parts = selections.map((selection) => `(select ${selection} ${newest})`);
  const rows = await db.select(`select * from (${parts.join(' union all ')}) as found ${newest}`, params);
  return rows.map(toSummary);
}

/** Finds a delivery of a project. */
export async function findDelivery(
  db: Queries,
  projectId: string,
  deliveryId: string,
): Promise<LoggedDelivery | null> {
  const rows = await db.select(
    `select ${pendingColumns} from delivery_queue where id = $1 and project_id = $2
     union all select ${finishedColumns} from deliveries where id = $1 and project_id = $2`,
    [deliveryId, projectId],
  );
  const [logged] = await addAttempts(db, rows.map(toSummary));
  return logged ?? null;
}

/** What a pending delivery has not. */
const ofFinished = ['status', 'deliveredAt', 'attemptId', 'durationMs', 'responseBody'] as const;
const results = rowsOf(DeliveryEntity, ofFinished);
const shown = rowsOf(DeliveryEntity, keysWithout(DeliveryEntity, ofFinished));

const finishedColumns = `${shown.columns}, ${results.columns}, null::timestamptz as "dueAt"`;

const pendingColumns = `${shown.columns}, 'pending' as status, null::timestamptz as "deliveredAt", null as "attemptId",
  null::int as "durationMs", null as "responseBody", due_at as "dueAt"`;

/** Ends a page before the delivery with which it would have too many attempts. */
function endedByAttempts(page: Page<Summary>): Page<Summary> {
  let attempts = 0;
  const end = page.items.findIndex(({ delivery: { attemptCount } }, index) => {
    attempts += Math.min(attemptCount, MAX_ATTEMPTS);
    return attempts > MAX_PAGE_ATTEMPTS && index > 0;
  });
  if (end === -1) return page;
  const items = page.items.slice(0, end);
  return { items, nextCursor: items.at(-1)?.id ?? null };
}

async function addAttempts(db: Queries, deliveries: Summary[]): Promise<LoggedDelivery[]> {
  const isShort = ({ delivery: { attemptCount } }: Summary) => attemptCount <= MAX_ATTEMPTS;
  const long = deliveries.filter((each) => !isShort(each));
  const failed = await db.read((em) =>
    em.find(
      AttemptEntity,
      {
        $or: [
          { deliveryId: { $in: deliveries.filter(isShort).map(({ id }) => id) } },
          ...long.map(({ id, delivery: { attemptCount } }) => ({
            deliveryId: id,
            number: { $gt: attemptCount - MAX_ATTEMPTS },
          })),
        ],
      },
      { orderBy: { deliveryId: 'asc', number: 'asc' } },
    ),
  );
  const byDelivery = Map.groupBy(failed, (attempt) => attempt.deliveryId);
  return deliveries.map(({ delivery, last }) => ({
    delivery,
    attempts: [...(byDelivery.get(delivery.id) ?? []), ...(last === null ? [] : [last])],
  }));
}

function toSummary(row: Row): Summary {
  const { attemptId, durationMs, responseBody, ...finished } = { ...shown.map(row), ...results.map(row) };
  const status: Delivery['status'] = row.status === 'pending' ? 'pending' : finished.status;
  const delivery = { ...finished, status, dueAt: timeOrNull(row.dueAt) };
  const { id, attemptCount: number, lastAttemptAt: startedAt, responseStatus } = delivery;
  if (attemptId === null || startedAt === null) return { id, delivery, last: null };
  // The successful attempt, which a finished delivery holds.
  const facts = { responseStatus, error: null, responseBody, durationMs: durationMs ?? 0, startedAt };
  return { id, delivery, last: { id: attemptId, deliveryId: id, number, status: 'delivered', ...facts } };
}

/** How many attempts of one delivery are shown, the last ones: it can be replayed any number of times. */
const MAX_ATTEMPTS = 100;

/** An attempt holds up to 2 KiB of an answer, three times that in UTF-8; gRPC clients take 4 MiB by default. */
const MAX_PAGE_ATTEMPTS = 500;

/** A delivery as the log shows it, with its attempts, oldest first. */
export type LoggedDelivery = { delivery: Delivery; attempts: Attempt[] };

/** A delivery, pending or finished. `dueAt` is the next attempt, while pending. */
export type Delivery = Omit<
  InferEntity<typeof DeliveryEntity>,
  'status' | 'attemptId' | 'durationMs' | 'responseBody'
> & { status: 'pending' | 'delivered' | 'failed'; dueAt: Date | null };

type Summary = { id: string; delivery: Delivery; last: Attempt | null };

/** Names a webhook or a form, or no index is used. */
export type DeliveryFilter = ({ webhookId: string } | { formId: string }) & { status?: Delivery['status'] };
