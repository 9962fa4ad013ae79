import { END_OF_BODY, sentWithAnswers } from '../../domain/events/bodies.ts';
import { isObject } from '../../domain/json/json.ts';
import { objectOf, textOrNull } from '../database/columns.ts';
import { splitBatch } from '../database/faults.ts';
import type { Queries, Row } from '../database/queries.ts';
import { type Claim, claimedWebhook, webhookColumns } from '../deliveries/claimed.ts';
import { callingBack, mayCarryAnswers, queueing, queueingInput } from '../deliveries/enqueue.ts';
import type { Capacity } from '../deliveries/fairness.ts';
import { findOutcomes, STORED, type WriteOutcome } from './explain-conflicts.ts';
import type { Submission } from './submissions.ts';

/**
 * Stores a group of submissions with their events and the deliveries to the webhooks that listen, in one
 * statement and one commit, and returns the result of each row, in the order given. No two rows may be of the
 * same session or hold the same upload.
 *
 * What fits into `capacity` is leased to this process: each commit that makes deliveries, or events that emails
 * are to be made of, is reported to `onCommitted` with the claims.
 *
 * A row that fails for its own data fails alone: the group is split until the failing row is by itself.
 *
 * @throws DatabaseUnavailable if it stays unknown what is stored.
 */
export async function insertSubmissions(
  db: Queries,
  group: PreparedRow[],
  options: InsertOptions,
): Promise<InsertResult[]> {
  return splitBatch(
    group,
    (part) => insertPart(db, part, options),
    (_row, error): InsertResult[] => [{ outcome: 'refused', error }],
  );
}

async function insertPart(db: Queries, part: PreparedRow[], options: InsertOptions): Promise<InsertResult[]> {
  const stored = await insertGroup(db, part, options);
  const rows = part.map(({ row }) => row);
  const missed = rows.filter(({ id }) => !stored.has(id));
  const found = await findOutcomes(db, missed);
  return rows.map((row) => (stored.has(row.id) ? STORED : (found.get(row.id) ?? UNDECIDED)));
}

/** Writes a row as JSON once, for the statement and for its size. What is null is left out. */
export function prepare(row: NewSubmission, traceparent?: string): PreparedRow {
  const { event } = row;
  const input = {
    id: row.id,
    projectId: row.projectId,
    formId: row.formId,
    versionId: row.versionId,
    sessionId: row.sessionId ?? undefined,
    source: row.source,
    answers: row.answers,
    provenance: row.provenance ?? undefined,
    metadata: row.metadata,
    status: row.status,
    idempotencyKey: row.idempotencyKey ?? undefined,
    requestFingerprint: row.requestFingerprint ?? undefined,
    createdAt: row.createdAt.toISOString(),
    uploadIds: row.uploadIds?.length === 0 ? undefined : row.uploadIds,
    maxAccepted: row.maxAccepted,
    eventId: event?.id,
    eventType: event?.type,
    bodyStart: event?.body?.start,
    bodyEnd: event?.body?.end,
    callbackEventId: row.callback?.eventId,
    callbackStart: row.callback?.start,
    skipMailsForVersion: event?.skipMailsForVersion,
    keylessBytes: row.keylessBytes,
    respondent: row.respondent ?? undefined,
    respondentKey: row.respondentKey ?? undefined,
    replaces: row.replaces ?? undefined,
    traceparent,
  };
  return { row, traceparent, json: JSON.stringify(input) };
}

const UNDECIDED = { outcome: 'undecided' } as const;

/**
 * Rows and locks are taken in a fixed order, so that groups of several processes seldom meet in a deadlock.
 *
 * Sessions and uploads are locked before they are judged: of two groups with the same one, the second sees
 * what the first did. Most groups claim neither, and go without these parts.
 *
 * Forms that take a limited number count in one row, which is locked before it is read. Their other slots hold what
 * came before they had a limit.
 */
function insertStatement({ claims, limits, keyless, respondents }: Record<Part, boolean>): string {
  const only = (part: string) => (claims ? part : '');
  const limited = (part: string) => (limits ? part : '');
  const counted = (part: string) => (keyless ? part : '');
  const known = (part: string) => (respondents ? part : '');
  return `
with input as materialized (
  select * from json_to_recordset($1::json) as r(
    "id" text, "projectId" text, "formId" text, "versionId" text, "sessionId" text, "source" text, "answers" json,
    "provenance" json, "metadata" json, "status" text, "idempotencyKey" text, "requestFingerprint" text, "createdAt" timestamptz,
    "uploadIds" text[], "maxAccepted" int, "eventId" text, "eventType" text, "bodyStart" text, "bodyEnd" text,
    "skipMailsForVersion" text, "keylessBytes" bigint, "traceparent" text${only(', "replaces" text, "callbackEventId" text, "callbackStart" text')}${known(', "respondent" json, "respondentKey" text')}
  )
),${limited(`
locked as materialized (
  select form_id, accepted from form_counters
  where form_id in (select "formId" from input where "maxAccepted" is not null) and slot = ${LIMITED_SLOT}
  order by form_id for update
), fitting as materialized (
  select i."id" from (
    select "id", "formId", "maxAccepted", row_number() over (partition by "formId" order by "id") as place
    from input where "maxAccepted" is not null
  ) i join locked on locked.form_id = i."formId"
  where i."maxAccepted" >= i.place + locked.accepted + (
    select coalesce(sum(c.accepted), 0) from form_counters c
    where c.form_id = i."formId" and c.slot <> ${LIMITED_SLOT}
  )
),`)}${only(`
open_sessions as materialized (
  select id from sessions
  where id in (select "sessionId" from input) and submitted_at is null and cancelled_at is null
    and expires_at > clock_timestamp()
  order by id for update
), free_uploads as materialized (
  select id from uploads
  where id in (select unnest("uploadIds") from input)
    and (submission_id is null or submission_id in (select "replaces" from input))
  order by id for update
),`)} stored as (
  insert into submissions (id, project_id, form_id, version_id, session_id, source, answers, metadata, status,
    idempotency_key, request_fingerprint, created_at, provenance${known(', respondent, respondent_key')})
  select i."id", i."projectId", i."formId", i."versionId", i."sessionId", i."source", i."answers", i."metadata",
    i."status", i."idempotencyKey", i."requestFingerprint", i."createdAt", i."provenance"${known(', i."respondent", i."respondentKey"')}
  from input i${only(` left join open_sessions s on s.id = i."sessionId"`)}
  where true${only(` and (i."sessionId" is null or s.id is not null)
    and not exists (select from unnest(i."uploadIds") as u where u not in (select id from free_uploads))`)}${limited(`
    and (i."maxAccepted" is null or i."id" in (select id from fitting))`)}
  order by i."formId", i."idempotencyKey", i."id"
  on conflict do nothing
  returning id, form_id, session_id, status
), announced as (
  insert into events (id, project_id, form_id, type, submission_id, session_id, body, created_at, fanned_out_at,
    traceparent)
  select i."eventId", i."projectId", i."formId", i."eventType", i."id", i."sessionId",
    coalesce(i."bodyStart" || i."answers"::text || i."bodyEnd", '{}'), i."createdAt",
    case when f.id is not null or i."bodyStart" is null then now() end, i."traceparent"
  from input i join stored on stored.id = i."id"
    left join forms f on f.id = i."formId" and f.current_version_id = i."skipMailsForVersion"
  where i."eventId" is not null
  order by i."eventId"
  returning id, project_id, form_id, type, created_at, fanned_out_at
), ${queueing('$3', { answered: 'input' })},${only(`
claimed as (
  update sessions set submitted_at = now(), submission_id = stored.id
  from stored where sessions.id = stored.session_id
), ended as (
  select i."callbackEventId" as event_id, i."id" as submission_id, s.id as session_id, s.project_id, s.form_id,
    s.callback, i."createdAt" as created_at,
    i."callbackStart" || case when ${mayCarryAnswers('s.callback')} then ',"answers":' || i."answers"::text else '' end
      || '${END_OF_BODY}' as body
  from input i join stored on stored.id = i."id" join sessions s on s.id = stored.session_id
  where i."callbackEventId" is not null
), ${callingBack}, attached as (
  update uploads set submission_id = i."id"
  from input i join stored on stored.id = i."id"
  where uploads.id = any(i."uploadIds")
),`)} counted as (
  insert into form_counters as c (form_id, slot, accepted, spam${counted(', project_id')}, keyless_bytes)
  select form_id, ${limits ? `case when form_id in (select form_id from locked) then ${LIMITED_SLOT} else $2::smallint end` : '$2::smallint'},
    count(*) filter (where stored.status = 'accepted'), count(*) filter (where stored.status = 'spam'),
    ${keyless ? `min(i."projectId") filter (where i."keylessBytes" > 0), coalesce(sum(i."keylessBytes"), 0)` : '0'}
  from stored${counted(' join input i on i."id" = stored.id')} group by form_id order by form_id
  on conflict (form_id, slot) do update
    set accepted = c.accepted + excluded.accepted, spam = c.spam + excluded.spam${counted(`,
      project_id = coalesce(excluded.project_id, c.project_id),
      keyless_bytes = c.keyless_bytes + excluded.keyless_bytes`)}
)
select id as stored, null as delivery, null as event, null as webhook, null as tenant, null::json as commit from stored
union all
select null, id, event_id, webhook_id, share, null from queued where first_lease_until is not null
union all
select null, null, null, null, null, json_build_object(
  'lease', (select first_lease_until::text from queued where first_lease_until is not null limit 1),
  'eventsWait', exists (select from announced where fanned_out_at is null),
  'deliveriesWait', exists (select from queued where first_lease_until is null and not postponed)${only(
    ' or exists (select from called_back)',
  )},
  'webhooks', (
    select json_agg(row_to_json(found)) from (
      select w.url, ${webhookColumns} from webhooks w
      where w.id in (select webhook_id from queued where first_lease_until is not null)
    ) found
  )
)`;
}

/** What a statement does only for groups with rows that need it. */
type Part = 'claims' | 'limits' | 'keyless' | 'respondents';

/** The slot in which forms count that take a limited number. */
const LIMITED_SLOT = 0;

const statements = new Map<string, string>();

/** The statement for rows where some claim something, are of limited forms, or of forms made without a key. */
function statementFor(group: PreparedRow[], limits: boolean): string {
  const claims = group.some(({ row }) => exclusiveKeysOf(row).length > 0);
  const keyless = group.some(({ row }) => row.keylessBytes !== undefined);
  const respondents = group.some(({ row }) => row.respondent !== null);
  const key = [claims, limits, keyless, respondents].join();
  const statement = statements.get(key) ?? insertStatement({ claims, limits, keyless, respondents });
  statements.set(key, statement);
  return statement;
}

async function insertGroup(db: Queries, group: PreparedRow[], options: InsertOptions): Promise<Set<string>> {
  const rows = `[${group.map(({ json }) => json).join(',')}]`;
  const limited = new Set(group.flatMap(({ row }) => (row.maxAccepted === undefined ? [] : row.formId)));
  if (limited.size > 0) {
    // What isn't there can't be locked.
    await db.execute(
      `insert into form_counters (form_id, slot) select unnest($1::text[]), ${LIMITED_SLOT} on conflict do nothing`,
      [[...limited].sort()],
      { repeatable: true, prepared: true },
    );
  }
  const statement = statementFor(group, limited.size > 0);
  // Repeating is safe: ids that are stored already conflict with themselves, and are found by `findOutcomes`.
  const capacity = queueingInput('submission.created', options.capacity());
  const result = await db.execute(statement, [rows, options.slot, capacity], {
    repeatable: true,
    prepared: true,
  });
  const stored = new Set(result.flatMap((row) => (typeof row.stored === 'string' ? row.stored : [])));
  if (stored.size > 0) options.onCommitted(commitOf(result, group));
  return stored;
}

/** Makes the claims of what was leased, with the bodies that are in memory. */
function commitOf(rows: Row[], group: PreparedRow[]): Commit {
  const commit = objectOf(rows.find((row) => row.commit !== null)?.commit);
  const webhooks = Array.isArray(commit.webhooks)
    ? commit.webhooks.flatMap((webhook: unknown) => (isObject(webhook) ? [webhook] : []))
    : [];
  const lease = textOrNull(commit.lease) ?? '';
  const byId = new Map(webhooks.map((webhook) => [webhook.found_webhook, webhook]));
  const events = new Map(group.map((prepared) => [prepared.row.event?.id, prepared]));
  const claims = rows.flatMap(({ delivery, event: eventId, webhook: webhookId, tenant }): Claim[] => {
    const { row, traceparent = null } = (typeof eventId === 'string' && events.get(eventId)) || {};
    const webhook = byId.get(webhookId);
    if (!row?.event?.body || webhook === undefined) return [];
    const { type, body } = row.event;
    return [
      {
        id: String(delivery),
        lease,
        projectId: row.projectId,
        tenant: String(tenant),
        formId: row.formId,
        kind: type,
        receiver: String(webhookId),
        step: 0,
        postponedFrom: null,
        traceparent,
        content: {
          channel: 'webhook',
          url: String(webhook.url),
          eventId: String(eventId),
          body: sentWithAnswers(body, row),
          webhook: claimedWebhook(webhook),
        },
      },
    ];
  });
  return { claims, eventsWait: commit.eventsWait === true, deliveriesWait: commit.deliveriesWait === true };
}

/** What no two rows of a group may both have: the session that the row ends, and its uploads. */
export function exclusiveKeysOf({ sessionId, uploadIds = [] }: NewSubmission): readonly string[] {
  return sessionId === null ? uploadIds : [sessionId, ...uploadIds];
}

/** A submission to store, and what goes into the same commit. */
export type NewSubmission = Submission & {
  /** Null if nobody is to know. */
  event: {
    id: string;
    type: string;
    /** Has the JSON of the answers inside. Null if it is neither emailed nor sent, as of spam. */
    body: { start: string; end: string } | null;
    /** The version of the form by which it causes no emails, as long as that is the current one. */
    skipMailsForVersion?: string | undefined;
  } | null;
  /** Of a session with a callback: the event that reports its end, and how the body of that begins. */
  callback?: { eventId: string; start: string } | undefined;
  /** Uploads that become this submission's; without all of them it is not stored. */
  uploadIds?: string[];
  /** How many accepted submissions the form may hold with this one; with more it is not stored. Absent: any number. */
  maxAccepted?: number | undefined;
  /** What it counts for, of a form made without a key. */
  keylessBytes?: number;
};

export type InsertResult = WriteOutcome | { outcome: 'undecided' } | { outcome: 'refused'; error: unknown };
/**
 * What was committed: the claims of this process, and whether there are events that emails are to be made of,
 * and deliveries for the process that claims them.
 */
export type Commit = { claims: Claim[]; eventsWait: boolean; deliveriesWait: boolean };

export type InsertOptions = {
  /** The counters' slot of this process. */
  slot: number;
  capacity: () => Capacity;
  /** Must not throw. */
  onCommitted: (commit: Commit) => void;
};

/** `traceparent` is that of the request, if it is recorded. */
export type PreparedRow = { row: NewSubmission; json: string; traceparent: string | undefined };
