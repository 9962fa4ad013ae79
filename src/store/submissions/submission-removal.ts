import { mailboxOf } from '../../domain/addresses/email-address.ts';
import type { GoneSubmission } from '../../domain/events/bodies.ts';
import { eventTypes } from '../../domain/events/index.ts';
import { ALPHABET, instantOfId, KEYLESS_CREATOR, newId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { rowsOf, textOrNull } from '../database/columns.ts';
import type { Queries, Row, Transaction } from '../database/queries.ts';
import { closingWebhooks, insertAnnouncedEvents } from '../deliveries/enqueue.ts';
import { pendingWhere } from '../deliveries/queue-table.ts';
import { removeDeliveries } from '../deliveries/remove.ts';
import { bytesOfSubmissionRow } from '../keyless-storage.ts';
import { removeUploads } from '../uploads.ts';
import { SubmissionEntity } from './submissions.ts';

/**
 * Removes a submission of a project with all that holds its answers: its events, deliveries, attempts, uploads, and
 * what its session began with; so does what it corrects and what corrects it. Deliveries that are pending are never sent;
 * webhooks that registered `submission.deleted` get that. Notify the workers after the commit. False if there is no such
 * submission.
 */
export async function removeSubmission(
  tx: Transaction,
  { projectId, id: submissionId }: { projectId: string; id: string },
  announcement: Announcement,
): Promise<boolean> {
  const rows = await tx.select('select id from submissions where id = $1 and project_id = $2 for update', [
    submissionId,
    projectId,
  ]);
  if (rows.length === 0) return false;
  await removeRows(tx, [submissionId], announcement);
  return true;
}

/**
 * Removes up to `limit` of a form's submissions with ids below `beforeId`, which is a bound of time, in
 * the same way. Returns how many.
 */
export async function removeSubmissionsBefore(
  tx: Transaction,
  { formId, beforeId, limit }: { formId: string; beforeId: string; limit: number },
  announcement: Announcement,
): Promise<number> {
  const rows = await tx.select(
    `select id from submissions where form_id = $1 and status in ('accepted', 'spam', 'replaced') and id < $2
     limit $3 for update skip locked`,
    [formId, beforeId, limit],
  );
  await removeRows(tx, idsOf(rows), announcement);
  return rows.length;
}

/**
 * Finds up to `limit` of the submissions that are older than their forms keep them, by the time of the database, with
 * how long, in milliseconds, the first of them should have been gone. One statement finds them over all forms, by an
 * index.
 */
export async function findExpiredSubmissions(db: Queries, limit: number): Promise<ExpiredSubmissions> {
  const rows = await db.select(FIND_EXPIRED, [limit]);
  const lateMs = rows.map(({ id, before_ms }) => Number(before_ms) - instantOfId(String(id)));
  return { ids: idsOf(rows), lateMs: Math.max(0, ...lateMs) };
}

export type ExpiredSubmissions = { ids: string[]; lateMs: number };

/**
 * Removes submissions as `removeSubmission` does, but those that somebody else removes now. Returns them by their
 * forms.
 */
export async function removeFoundSubmissions(
  tx: Transaction,
  found: readonly string[],
  announcement: Announcement,
): Promise<RemovedOfForm[]> {
  const rows = await tx.select(
    'select id from submissions where id = any($1) order by id for update skip locked',
    [found],
  );
  return countByForm(await removeRows(tx, idsOf(rows), announcement));
}

/** Ids hold the time, in characters that each stand for 5 bits; the bound of each retention time is made once. */
const FIND_EXPIRED = `
with bounds as materialized (
  select days, before_ms, 'sub_' || (
    select string_agg(substr('${ALPHABET}', ((before_ms >> (45 - 5 * n)) & 31)::int + 1, 1), '' order by n)
    from generate_series(0, 9) n
  ) as before
  from (
    select days, floor(extract(epoch from now()) * 1000)::bigint - days * ${DAY_MS}::bigint as before_ms
    from (select distinct retention_days as days from forms where retention_days is not null) d
  ) b
)
select s.id, f.id as form_id, f.project_id, b.before_ms
from forms f join bounds b on b.days = f.retention_days
  cross join (values ('accepted'), ('spam'), ('replaced')) as of(status)
  cross join lateral (
    select id from submissions
    where form_id = f.id and status = of.status and id < b.before
    order by id limit $1
  ) s
where f.retention_days is not null
limit $1`;

export const idsOf = (rows: Row[]) => rows.map(({ id }) => String(id));

/** How many of each form, out of rows with its `form_id` and `project_id`. */
export function countByForm(rows: Row[]): RemovedOfForm[] {
  const byForm = Map.groupBy(rows, ({ form_id }) => String(form_id));
  return [...byForm].map(([formId, of]) => {
    return { formId, projectId: String(of[0]?.project_id), count: of.length };
  });
}

export type RemovedOfForm = { formId: string; projectId: string; count: number };

/** Removes submissions as `removeSubmission` does. Returns all that went. */
export async function removeRows(tx: Transaction, of: string[], announcement: Announcement): Promise<Row[]> {
  const rows = await lockWithCorrections(tx, of);
  const ids = idsOf(rows);
  await announceRemoval(tx, ids, announcement);
  // Locked, so that emails of them are either made by now or never.
  const events = await tx.select(
    'select id from events where submission_id = any($1) order by id for update',
    [ids],
  );
  const eventIds = idsOf(events);
  await forgetAutoresponses(tx, eventIds);
  await removeDeliveries(tx, 'event_id = any($1)', [eventIds]);
  await tx.execute('delete from events where submission_id = any($1)', [ids]);
  await tx.execute(
    `update sessions set prefill = '{}', metadata = '{}', partial_answers = null, context = null
     where id in (select session_id from submissions where id = any($1))`,
    [ids],
  );
  await removeUploads(tx, { where: 'submission_id = any($1)', params: [ids] });
  await tx.execute(
    `with removed as (
       delete from submissions where id = any($1)
       returning form_id, project_id, status, ${bytesOfSubmissionRow} as bytes
     )
     insert into form_counters as c (form_id, slot, accepted, spam, project_id, keyless_bytes)
     select form_id, 0, -count(*) filter (where removed.status = 'accepted'),
       -count(*) filter (where removed.status = 'spam'), removed.project_id,
       -coalesce(sum(bytes) filter (where created_by = '${KEYLESS_CREATOR}'), 0)
     from removed left join forms on forms.id = form_id
     group by form_id, removed.project_id order by form_id
     on conflict (form_id, slot) do update
       set accepted = c.accepted + excluded.accepted, spam = c.spam + excluded.spam,
         keyless_bytes = c.keyless_bytes + excluded.keyless_bytes,
         project_id = coalesce(c.project_id, excluded.project_id)`,
    [ids],
  );
  return rows;
}

/** Locks submissions with all that they correct and are corrected by, as far as that goes. */
async function lockWithCorrections(tx: Transaction, ids: string[]): Promise<Row[]> {
  const rows = await tx.select(
    `select id, form_id, project_id, replaces, replaced_by from submissions where id = any($1) order by id for update`,
    [ids],
  );
  const linked = rows.flatMap((row) => [row.replaces, row.replaced_by].flatMap((id) => textOrNull(id) ?? []));
  const all = new Set([...ids, ...linked]);
  return all.size === ids.length ? rows : lockWithCorrections(tx, [...all]);
}

/** Forgets which mailboxes were answered to for these events. */
async function forgetAutoresponses(tx: Transaction, eventIds: string[]): Promise<void> {
  const ofEvents = "event_id = any($1) and kind = 'autoresponse'";
  const columns = 'form_id, receiver';
  const answered = await tx.select(
    `select ${columns} from deliveries where ${ofEvents} union all ${pendingWhere(ofEvents, columns)}`,
    [eventIds],
  );
  if (answered.length === 0) return;
  const mailboxes = answered.map(({ form_id, receiver }) => ({
    form_id,
    address: mailboxOf(String(receiver)),
  }));
  await tx.execute(
    `delete from autoresponses a using json_to_recordset($1::json) as g(form_id text, address text)
     where a.form_id = g.form_id and a.address = g.address`,
    [JSON.stringify(mailboxes)],
  );
}

/**
 * Stores a `submission.deleted` event for each submission of a project or form with a webhook that registered it,
 * and queues its deliveries. Such an event names its submission in its body alone, and so outlives it.
 */
async function announceRemoval(tx: Transaction, ids: string[], announcement: Announcement): Promise<void> {
  const rows = await tx.select(
    `select ${facts.columns} from submissions s where id = any($1) and (exists (
       select from webhooks w where (w.form_id = s.form_id or (w.form_id is null and w.project_id = s.project_id))
         and w.active and w.deleted_at is null and 'submission.deleted' = any(w.events)
     ) or exists (select from (${closingWebhooks('s')}) as w)) order by id`,
    [ids],
  );
  await announce(tx, 'submission.deleted', rows.map(facts.map), announcement);
}

const facts = rowsOf(SubmissionEntity, ['id', 'formId', 'projectId', 'sessionId']);

/** Stores an event of each submission that is gone or replaced, and queues its deliveries. */
export async function announce(
  tx: Transaction,
  type: 'submission.deleted' | 'submission.replaced',
  gone: (GoneSubmission & { projectId: string })[],
  { at, schedule }: Announcement,
): Promise<void> {
  const createdAt = new Date(at);
  const events = gone.map((submission) => {
    const id = newId('evt', at);
    const body = eventTypes[type].body({ id, at: createdAt.toISOString() }, submission);
    const { id: of, projectId, formId, replacedBy } = submission;
    return { id, projectId, formId, type, submissionId: replacedBy ? of : null, body, createdAt };
  });
  await insertAnnouncedEvents(tx, type, events, schedule);
}

/** How a removal is announced: `at` is its time in milliseconds since 1970, `schedule` the retry schedule. */
export type Announcement = { at: number; schedule: readonly number[] };
