import {
  type AnswerFilter,
  type FilterKind,
  type FilterOp,
  sqlTypeOf,
} from '../../domain/answers/answer-filters.ts';
import { type Page, type PageRequest, pageOf, type Queries, type Row } from '../database/queries.ts';
import {
  columns,
  conditionsOf,
  IS_SMALL,
  MAX_GROUP,
  type SubmissionFilter,
  toListed,
  withinBytes,
} from './submission-pages.ts';
import type { ShownSubmission } from './submissions.ts';

/**
 * Lists submissions of a form whose answers fit conditions, newest first. `searchedTo` is the last id that was looked
 * at, where there are fewer than the page may hold; null if there are none behind it.
 */
export async function searchSubmissions(
  db: Queries,
  formId: string,
  filter: SearchFilter,
  { cursor, limit }: PageRequest,
): Promise<FoundSubmissions> {
  const { rows, searchedTo } = await search(db, formId, filter, { cursor, limit: limit + 1, shown: columns });
  const page = pageOf(rows.map(toListed), limit);
  if (page.nextCursor !== null) return withinBytes(db, page);
  return { ...(await withinBytes(db, { ...page, nextCursor: searchedTo })), searchedTo };
}

/** Counts submissions of a form whose answers fit conditions; undefined if there are too many to look at. */
export async function countFound(
  db: Queries,
  formId: string,
  filter: SearchFilter,
): Promise<number | undefined> {
  const all = { limit: Number.POSITIVE_INFINITY, shown: 'id' };
  const { rows, searchedTo } = await search(db, formId, filter, all);
  return searchedTo === null ? rows.length : undefined;
}

/**
 * Finds up to `limit` submissions after `cursor`, newest first, with the columns `shown`. No index has answers, so that
 * it goes through the form's submissions, in statements of some milliseconds and as many as one call may. `searchedTo`
 * is the last id that it has looked at; null if there are none behind it.
 */
async function search(
  db: Queries,
  formId: string,
  { filters, ...filter }: SearchFilter,
  { cursor = AFTER_ALL, limit, shown }: { cursor?: string | undefined; limit: number; shown: string },
): Promise<{ rows: Row[]; searchedTo: string | null }> {
  const { conditions, params } = conditionsOf(formId, filter);
  const range = `from submissions where ${conditions.join(' and ')} and id < $${params.length + 1}`;
  const wanted: unknown[] = [...params, cursor];
  const fits = filters.map((each) => `coalesce(${conditionOf(each, wanted)}, false)`).join(' and ');
  const further = wanted.slice(params.length + 1);
  const next = `$${wanted.length + 1}`;
  const end = performance.now() + MAX_MS;
  const rows: Row[] = [];
  let at = cursor;
  for (let searched = 0; searched < MAX_ROWS && performance.now() < end; searched += STEP_ROWS) {
    const most = Math.min(limit - rows.length, STEP_ROWS);
    const found = await db.select(
      `select ${shown}, fits from (
         select *, case when ${IS_SMALL} then ${fits} end as fits ${range} order by id desc limit ${STEP_ROWS}
       ) as step where fits is distinct from false order by id desc limit ${next}`,
      [...params, at, ...further, most],
    );
    const ofLarge = `select id ${range} and ${fits} and id = any(${next})`;
    rows.push(...(await fittingOf(found, (some) => db.select(ofLarge, [...params, at, ...further, some]))));
    // Else the last of the step was perhaps not looked at.
    const isWhole = found.length < most;
    const [last] = isWhole
      ? await db.select(`select id ${range} order by id desc offset ${STEP_ROWS - 1} limit 1`, [
          ...params,
          at,
        ])
      : found.slice(-1);
    if (last === undefined) return { rows, searchedTo: null };
    at = String(last.id);
    if (rows.length >= limit) break;
  }
  return { rows, searchedTo: at };
}

/**
 * The id of the submission that `offset` others come before, counted from `cursor` or the newest; null if there is
 * none.
 */
export async function findAtOffset(
  db: Queries,
  formId: string,
  filter: SubmissionFilter,
  { cursor = AFTER_ALL, offset }: { cursor?: string | undefined; offset: number },
): Promise<string | null> {
  const { conditions, params } = conditionsOf(formId, filter);
  let at = cursor;
  for (let left = offset; left > 0; left -= WALK_ROWS) {
    const [row] = await db.select(
      `select id from submissions where ${conditions.join(' and ')} and id < $${params.length + 1}
       order by id desc offset $${params.length + 2} limit 1`,
      [...params, at, Math.min(left, WALK_ROWS) - 1],
      { prepared: true },
    );
    if (row === undefined) return null;
    at = String(row.id);
  }
  return at;
}

/** Counts submissions of a form by an index; undefined if there are more than `MAX_ROWS`. */
export async function countSubmissions(
  db: Queries,
  formId: string,
  filter: SubmissionFilter,
): Promise<number | undefined> {
  const { conditions, params } = conditionsOf(formId, filter);
  const [row] = await db.select(
    `select count(*) as count from (
       select from submissions where ${conditions.join(' and ')} limit ${MAX_ROWS + 1}
     ) as counted`,
    params,
  );
  const count = Number(row?.count ?? 0);
  return count > MAX_ROWS ? undefined : count;
}

/**
 * Of the rows found, those that fit. What has large answers was not looked at: `select` reads it, a few rows at a
 * time.
 */
async function fittingOf(found: readonly Row[], select: (ids: string[]) => Promise<Row[]>): Promise<Row[]> {
  const unfit = new Set(found.filter((row) => row.fits === null).map(({ id }) => String(id)));
  const large = [...unfit];
  for (let from = 0; from < large.length; from += MAX_GROUP) {
    for (const { id } of await select(large.slice(from, from + MAX_GROUP))) unfit.delete(String(id));
  }
  return found.filter(({ id }) => !unfit.has(String(id)));
}

/**
 * A condition on an answer. The answer may be of an earlier version, which had a field of another type: what can't be
 * compared gives null.
 */
function conditionOf(filter: AnswerFilter, params: unknown[]): string {
  const { fieldId, kind, op, values } = filter;
  if (op !== 'in' && values.length > 1)
    return `(${values.map((each) => conditionOf({ ...filter, values: [each] }, params)).join(' or ')})`;
  const name = `$${params.push(fieldId)}::text`;
  const answer = (readers[kind] ?? textOf)(name);
  if (op === 'in') return `${answer} = any($${params.push(values)}::${sqlTypeOf(kind)}[])`;
  const value = `$${params.push(values[0])}::${sqlTypeOf(kind)}`;
  if (op !== 'contains' && kind !== 'text' && kind !== 'choice')
    return `${answer} ${comparisons[op]} ${kind === 'time' ? withSeconds(value) : value}`;
  // To look for the text's bytes in all of the answers takes a fifth of the time of reading them as JSON.
  const bytes = Buffer.from(JSON.stringify(values[0]).slice(1, -1)).toString('hex');
  const isThere = `position(decode($${params.push(bytes)}, 'hex') in json_send(answers)) > 0`;
  if (op !== 'contains') return `${isThere} and ${answer} = ${value}`;
  return kind === 'choices'
    ? `${isThere} and jsonb_exists((answers->${name})::jsonb, ${value})`
    : `${isThere} and strpos(${answer}, ${value}) > 0`;
}

const comparisons: Record<Exclude<FilterOp, 'in' | 'contains'>, string> = { eq: '=', gte: '>=', lte: '<=' };

const textOf = (name: string) => `(answers->>${name}) collate "C"`;

/** How the answers are read that are no texts to compare. */
const readers: Partial<Record<FilterKind, (name: string) => string>> = {
  time: (name) => withSeconds(textOf(name)),
  number: (name) => `case json_typeof(answers->${name}) when 'number' then (answers->>${name})::numeric end`,
  // The days are added to the first of the month: a text of an earlier version can be no day of any.
  instant: (name) => `case when answers->>${name} ~ '${INSTANT}' then
      (left(answers->>${name}, 8) || '01' || substr(answers->>${name}, 11))::timestamptz
      + (substr(answers->>${name}, 9, 2)::int - 1) * interval '24 hours' end`,
};

const withSeconds = (time: string) => `case length(${time}) when 5 then ${time} || ':00' else ${time} end`;

/** Of what fields of instants take what PostgreSQL does: no year 0, and offsets below 16 hours. */
const INSTANT =
  '^(?!0000)\\d{4}-(0[1-9]|1[0-2])-\\d\\dT([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d{1,9})?)?(Z|[+-](0\\d|1[0-5]):[0-5]\\d)$';

/** Behind every id. */
const AFTER_ALL = 'sub_~';

/** What one statement goes through: some milliseconds of the embedded database. */
const STEP_ROWS = 2_500;
const WALK_ROWS = 10_000;

/** What one call goes through at most, and about how long it may take, its rests between statements included. */
const MAX_ROWS = 100_000;
const MAX_MS = 2_000;

type SearchFilter = SubmissionFilter & { filters: readonly AnswerFilter[] };

/** `searchedTo`: the search has gone no further. */
export type FoundSubmissions = Page<ShownSubmission> & { searchedTo?: string | null };
