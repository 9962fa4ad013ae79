import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { smallestIdAt } from '../domain/ids.ts';
import { currentTraceparent } from '../telemetry/trace-context.ts';
import { id, keysWithout, rowsOf, text, textOrNull, time } from './database/columns.ts';
import { deleteSome, type Queries } from './database/queries.ts';
import { pendingWhere } from './deliveries/queue-table.ts';

/** The outbox: each event is written in the transaction of what happened. */
export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'events',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    /** One of the domain's event types. */
    type: text(),
    submissionId: id().strictNullable(),
    sessionId: id().strictNullable(),
    /** The webhook body as it is stored, fixed here: every delivery and retry sends what `sentBody` makes of it. */
    body: text(),
    createdAt: time(),
    /** Of the request that caused it, as W3C writes it; null if none is recorded. */
    traceparent: text().strictNullable(),
    /**
     * When its emails were made, or it was stored if it causes none; null while it waits. Writers say which: one that
     * doesn't is too old, see the migration refused-writers.
     */
    fannedOutAt: time().strictNullable().defaultRaw("'-infinity'"),
  },
  indexes: [
    { name: 'events_waiting', properties: ['id'], where: 'fanned_out_at is null' },
    { name: 'events_by_submission', properties: ['submissionId'], where: 'submission_id is not null' },
    { name: 'events_by_project', properties: ['projectId', 'id'] },
    { name: 'events_by_form', properties: ['formId'], where: 'submission_id is null' },
    {
      name: 'events_by_session',
      properties: ['sessionId'],
      where: 'session_id is not null and submission_id is null',
    },
  ],
  triggers: [
    {
      name: 'events_default',
      timing: 'before',
      events: ['insert'],
      expression: `create trigger "events_default" before insert on "events" for each row
        when (new.fanned_out_at = '-infinity') execute function "settle_event_default"()`,
    },
  ],
});

type Event = InferEntity<typeof EventEntity>;

/** Writes events into the outbox, in the transaction of what they report. Notify the workers after it. */
export async function insertEvents(db: Queries, events: NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  const traceparent = currentTraceparent() ?? null;
  await db.write((em) =>
    em.insertMany(
      EventEntity,
      events.map((event) => ({ ...event, fannedOutAt: event.fannedOutAt ?? null, traceparent })),
    ),
  );
}

/**
 * Up to `limit` events whose emails are to be made, oldest first, from the id `since` on. Ends before the event
 * with which the bodies would have more than `maxBytes`, if it is not the first. `more` says whether others wait.
 *
 * Takes no lock: `fanOutEvents` settles which process makes the emails of an event.
 */
export async function listWaitingEvents(
  db: Queries,
  { since, limit, maxBytes }: { since: string; limit: number; maxBytes: number },
): Promise<{ events: StoredEvent[]; more: boolean }> {
  const rows = await db.select(
    `with found as materialized (
       select id, row_number() over (order by id) as place, sum(octet_length(body)) over (order by id) as bytes
       from (select id, body from events where fanned_out_at is null and id >= $1 order by id limit $2 + 1) as e
     )
     select ${wholes.columns}, (select count(*) from found) as found from events
     where id = any(array(select id from found where place <= $2 and (bytes <= $3 or place = 1))) order by id`,
    [since, limit, maxBytes],
  );
  return { events: rows.map(wholes.map), more: Number(rows[0]?.found ?? 0) > rows.length };
}

/**
 * The ids of up to `limit` events of these types, of all projects, in order, after the id `after`. An event is
 * committed a little after the time that its id holds.
 */
export async function listEventIds(
  db: Queries,
  { types, after, limit }: { types: readonly string[]; after: string; limit: number },
): Promise<string[]> {
  // One text is read in a tenth of the time of as many rows.
  const [row] = await db.select(
    `select array_to_string(
       array(select id from events where id > $1 and type = any($2::text[]) order by id limit $3), ',') as ids`,
    [after, types, limit],
    { prepared: true },
  );
  const ids = textOrNull(row?.ids) ?? '';
  return ids === '' ? [] : ids.split(',');
}

/** What is said of the events with these ids, in order; those that are gone are left out. */
export async function findEventHeads(db: Queries, ids: string[]): Promise<EventHead[]> {
  const rows = await db.select(
    `select ${heads.columns} from events where id = any($1::text[]) order by id`,
    [ids],
    { prepared: true },
  );
  return rows.map(heads.map);
}

/** The same of up to `limit` events of these types, of a project or one form of it, after the id `after`. */
export async function listEventHeads(
  db: Queries,
  { projectId, formId, types, after, limit }: EventRange,
): Promise<EventHead[]> {
  const rows = await db.select(
    `select ${heads.columns} from events
     where project_id = $1 and id > $2 and ($3 = '' or form_id = $3) and type = any($4::text[])
     order by id limit $5`,
    [projectId, after, formId, types, limit],
  );
  return rows.map(heads.map);
}

/** The events with these ids, in order; those that are gone are left out. */
export async function listEventsById(db: Queries, ids: string[]): Promise<StoredEvent[]> {
  return db.read((em) => em.find(EventEntity, { id: { $in: ids } }, { orderBy: { id: 'asc' } }));
}

/** Removes up to `limit` events of before a time, that have no deliveries left. Returns how many. */
export async function purgeEvents(db: Queries, before: number, limit: number): Promise<number> {
  const removed = await deleteSome(db, 'events', {
    where: `id < $1 and fanned_out_at is not null
      and not exists (select from deliveries where deliveries.event_id = events.id)
      and not exists (${pendingWhere('event_id = events.id')})`,
    params: [smallestIdAt('evt', before)],
    orderBy: 'id',
    limit,
  });
  return removed.length;
}

const heads = rowsOf(EventEntity, ['id', 'projectId', 'formId', 'type', 'submissionId', 'sessionId']);
const wholes = rowsOf(EventEntity, keysWithout(EventEntity, ['sessionId', 'traceparent', 'fannedOutAt']));

export type NewEvent = Pick<Event, 'id' | 'projectId' | 'formId' | 'type' | 'body' | 'createdAt'> &
  Partial<Pick<Event, 'submissionId' | 'sessionId' | 'fannedOutAt'>>;

export type StoredEvent = ReturnType<typeof wholes.map>;

/** An event without its body, for those who look at many. */
export type EventHead = ReturnType<typeof heads.map>;

/** `formId` empty: all forms. */
type EventRange = {
  projectId: string;
  formId: string;
  types: readonly string[];
  after: string;
  limit: number;
};
