import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { rowsOf, textOrNull } from '../database/columns.ts';
import {
  MAX_PAGE_BYTES,
  type Page,
  type PageRequest,
  pageOf,
  type Queries,
  type Row,
} from '../database/queries.ts';
import { type ShownSubmission, SubmissionEntity, shownKeys } from './submissions.ts';

/**
 * Lists a form's submissions, newest first, as many as `page.bytes` allows, but at least one.
 *
 * The form is one the caller may read: nothing here asks for its project.
 */
export async function listSubmissions(
  db: Queries,
  formId: string,
  filter: SubmissionFilter,
  page: PageRequest & { bytes?: number },
): Promise<Page<ShownSubmission>> {
  const { conditions, params } = conditionsOf(formId, filter);
  if (page.cursor !== undefined) conditions.push(`id < $${params.push(page.cursor)}`);
  const limit = params.push(page.limit + 1);
  const rows = await db.select(
    `select ${columns} from submissions where ${conditions.join(' and ')}
     order by id desc limit $${limit}`,
    params,
    { prepared: true },
  );
  return withinBytes(db, pageOf(rows.map(toListed), page.limit), page.bytes);
}

/**
 * Where the page begins of the submissions that came right after those before `page.cursor`; empty if it is the first.
 */
export async function cursorOfNewer(
  db: Queries,
  formId: string,
  filter: SubmissionFilter,
  page: { limit: number; cursor: string },
): Promise<string> {
  const { conditions, params } = conditionsOf(formId, filter);
  conditions.push(`id >= $${params.push(page.cursor)}`);
  const rows = await db.select(
    `select id from submissions where ${conditions.join(' and ')} order by id offset $${params.push(page.limit)} limit 1`,
    params,
  );
  return textOrNull(rows[0]?.id) ?? '';
}

/** The submissions of the same form and status that came right after and right before one. */
export async function findNeighbours(
  db: Queries,
  { id, formId, status }: Pick<ShownSubmission, 'id' | 'formId' | 'status'>,
): Promise<{ newer: string; older: string }> {
  const among = 'from submissions where form_id = $1 and status = $2';
  const [row] = await db.select(
    `select (select min(id) ${among} and id > $3) as newer, (select max(id) ${among} and id < $3) as older`,
    [formId, status, id],
  );
  return { newer: textOrNull(row?.newer) ?? '', older: textOrNull(row?.older) ?? '' };
}

/**
 * Goes through a form's submissions, oldest first: up to `limit` of them after the id `after`, as many as `bytes`
 * allows, but at least one. There are none left when the page has no cursor.
 */
export async function exportSubmissions(
  db: Queries,
  formId: string,
  filter: SubmissionFilter,
  range: { after: string; limit: number; bytes?: number },
): Promise<Page<ShownSubmission>> {
  const { conditions, params } = conditionsOf(formId, filter);
  const after = params.push(range.after);
  const limit = params.push(range.limit);
  const rows = await db.select(
    `select ${columns} from submissions where ${conditions.join(' and ')} and id > $${after}
     order by id limit $${limit}`,
    params,
    { prepared: true },
  );
  const items = rows.map(toListed);
  return withinBytes(db, { items, nextCursor: items.at(-1)?.id ?? null }, range.bytes);
}

/**
 * Ends a page before the submission that would make it larger than `limit` bytes. Submissions with large answers
 * come without them: they are read here, a few at a time.
 */
export async function withinBytes(
  db: Queries,
  page: Page<Listed>,
  limit: number = MAX_PAGE_BYTES,
): Promise<Page<ShownSubmission>> {
  const items: ShownSubmission[] = [];
  const read = new Map<string, Large>();
  let bytes = 0;
  for (const [index, { id, small }] of page.items.entries()) {
    if (small === undefined && !read.has(id)) {
      const average = items.length === 0 ? MAX_SUBMISSION_BYTES : bytes / items.length;
      if (items.length > 0 && bytes + average > limit) return endedAfter(items);
      const fitting = Math.floor(Math.min(limit - bytes, GROUP_BYTES) / average);
      const following = page.items.slice(index).flatMap((row) => (row.small === undefined ? row.id : []));
      const ids = following.slice(0, Math.min(MAX_GROUP, Math.max(1, fitting)));
      for (const large of await beginApart(() => readLarge(db, ids))) read.set(large.submission.id, large);
    }
    const large = read.get(id);
    const submission = small ?? large?.submission;
    // One that was deleted in between is left out.
    if (submission === undefined) continue;
    bytes += (large?.bytes ?? SMALL_BYTES) + bytesOfMetadata(submission) + bytesOfProvenance(submission);
    if (bytes > limit && items.length > 0) return endedAfter(items);
    items.push(submission);
  }
  return { items, nextCursor: page.nextCursor };
}

function endedAfter(items: ShownSubmission[]): Page<ShownSubmission> {
  return { items, nextCursor: items.at(-1)?.id ?? null };
}

async function readLarge(db: Queries, ids: string[]): Promise<Large[]> {
  const rows = await db.select(
    `select ${shown.columns}, octet_length(answers::text) as bytes from submissions where id = any($1)`,
    [ids],
    { prepared: true },
  );
  return rows.map((row) => ({ submission: shown.map(row), bytes: Number(row.bytes) }));
}

/**
 * Begins each read of large answers in a turn of the event loop of its own: the rows of many readers, taken in one turn,
 * would hold up everybody else. None waits for the answer of another, which the database may be slow to give.
 */
function beginApart<T>(read: () => Promise<T>): Promise<T> {
  lastBegun = lastBegun.then(() => yieldToEventLoop());
  return lastBegun.then(read);
}

let lastBegun: Promise<unknown> = Promise.resolve();

/** What metadata takes in a message. Most have none; it may be numbers throughout: `1,` takes 11 bytes. */
function bytesOfMetadata({ metadata }: ShownSubmission): number {
  return Object.keys(metadata).length === 0 ? 0 : 6 * JSON.stringify(metadata).length;
}

/** What the origins of many answers take in a message; those of a few fit into what is counted for the answers. */
function bytesOfProvenance({ answers, provenance }: ShownSubmission): number {
  const count = provenance === null ? 0 : Object.keys(answers).length;
  return count <= FEW_ANSWERS ? 0 : ORIGIN_BYTES * count;
}

const FEW_ANSWERS = 10;

/** An id of 64 characters, and the origin as JSON with a time and a key. */
const ORIGIN_BYTES = 200;

/** A request of the largest size, with the metadata of its session. */
const MAX_SUBMISSION_BYTES = 288 * 1024;

/**
 * What is read at once, if the answers are as large as those before: some ten milliseconds of the embedded database.
 */
const GROUP_BYTES = 512 * 1024;

/** Bounds what is read at once if they are larger: 6 MiB. */
export const MAX_GROUP = 24;

const shown = rowsOf(SubmissionEntity, shownKeys);

const others = rowsOf(
  SubmissionEntity,
  shownKeys.filter((key) => key !== 'answers'),
);

/** Where PostgreSQL begins to compress values, or to store them outside of the row. */
const SMALL_BYTES = 2048;

/** Whether a submission has no large answers, which few have. To tell does not read them. */
export const IS_SMALL = `pg_column_size(answers) <= ${SMALL_BYTES} and pg_column_compression(answers) is null`;

/** Large answers are null. */
export const columns = `${others.columns}, case when ${IS_SMALL} then answers end as answers`;

/** Each combination begins with an index: by session, by source or by form, all in the order of the ids. */
export function conditionsOf(
  formId: string,
  filter: SubmissionFilter,
): { conditions: string[]; params: unknown[] } {
  const params: unknown[] = [formId, filter.status ?? 'accepted'];
  const conditions = ['form_id = $1', 'status = $2'];
  if (filter.sessionId !== undefined) conditions.push(`session_id = $${params.push(filter.sessionId)}`);
  if (filter.source !== undefined) conditions.push(`source = $${params.push(filter.source)}`);
  if (filter.afterId !== undefined) conditions.push(`id > $${params.push(filter.afterId)}`);
  if (filter.beforeId !== undefined) conditions.push(`id < $${params.push(filter.beforeId)}`);
  return { conditions, params };
}

export function toListed(row: Row): Listed {
  return { id: String(row.id), small: row.answers === null ? undefined : shown.map(row) };
}

type Large = { submission: ShownSubmission; bytes: number };

/** A row of a page; without the submission if its answers are large. */
type Listed = { id: string; small: ShownSubmission | undefined };

/** Which of a form's submissions; accepted ones if no status is named. */
export type SubmissionFilter = {
  status?: ShownSubmission['status'];
  sessionId?: string;
  source?: string;
  /** Bounds of time as the smallest id of the instant: later than `afterId`, earlier than `beforeId`. */
  afterId?: string;
  beforeId?: string;
};
