import type { EndState } from '../world/types.ts';
import type { History } from './history.ts';

/** Reads what is left when the days are over, by the documented calls, and as rows where the rules are about rows. */
export async function readEnd(end: EndState, history: History): Promise<EndFacts> {
  const listed = new Map<string, ListedSubmission>();
  for (const { id } of history.forms.values()) {
    for (const submission of await listSubmissions(end, id)) listed.set(submission.id, submission);
  }
  const statuses = new Map<string, number>();
  for (const { ids } of history.submissions.values()) {
    for (const id of ids.keys()) {
      const reply = await end.call({ method: 'GET', path: `/v1/submissions/${id}` });
      statuses.set(id, reply.status);
    }
  }
  return {
    now: end.now,
    listed,
    statuses,
    texts: await readTexts(end),
    counts: await readCounts(end),
    queue: (await end.rows(QUEUE)).map((row) => ({
      id: String(row.id),
      channel: String(row.channel),
      kind: String(row.kind),
      formId: String(row.form_id),
      error: typeof row.error === 'string' ? row.error : '',
    })),
    waitingEvents: Number((await end.rows(WAITING_EVENTS))[0]?.count ?? 0),
    uploadRows: new Map(
      (await end.rows('select id, submission_id from uploads')).map((row) => [
        String(row.id),
        typeof row.submission_id === 'string' ? row.submission_id : undefined,
      ]),
    ),
    files: end.files,
    dead: await readDead(end),
  };
}

const QUEUE = 'select id, channel, kind, form_id, error from delivery_queue';
const WAITING_EVENTS = 'select count(*)::int as count from events where fanned_out_at is null';

async function listSubmissions(end: EndState, formId: string): Promise<ListedSubmission[]> {
  const listed: ListedSubmission[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const path = `/v1/forms/${formId}/submissions?limit=${PAGE}&offset=${offset}`;
    const { status, json } = await end.call({ method: 'GET', path });
    if (status !== 200) return listed;
    for (const each of json.submissions) {
      listed.push({
        id: each.id,
        formId,
        text: JSON.stringify(each),
        createdAt: Date.parse(each.created_at),
      });
    }
    if (json.submissions.length < PAGE) return listed;
  }
}

const PAGE = 100;

/** Every row of every table as text, in which nothing that was removed may be found. */
async function readTexts(end: EndState): Promise<EndFacts['texts']> {
  const tables = await end.rows(
    "select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
  );
  const texts: EndFacts['texts'] = [];
  for (const { table_name: table } of tables) {
    const rows = await end.rows(`select row_to_json(t)::text as text from "${String(table)}" t`);
    for (const { text } of rows) texts.push({ table: String(table), text: String(text) });
  }
  return texts;
}

async function readCounts(end: EndState): Promise<EndFacts['counts']> {
  const rows = await end.rows(
    `select coalesce(c.form_id, s.form_id) as form_id, coalesce(c.accepted, 0)::int as counted,
       coalesce(s.accepted, 0)::int as stored
     from (select form_id, sum(accepted) as accepted from form_counters group by form_id) c
       full join (select form_id, count(*) as accepted from submissions where status = 'accepted' group by form_id) s
         on s.form_id = c.form_id`,
  );
  return rows.map((row) => ({
    formId: String(row.form_id),
    counted: Number(row.counted),
    stored: Number(row.stored),
  }));
}

/** What the statistics of the embedded database say of each table. */
async function readDead(end: EndState): Promise<EndFacts['dead']> {
  await end.rows('select pg_stat_force_next_flush()');
  const rows = await end.rows('select relname, n_dead_tup, n_live_tup from pg_stat_user_tables');
  return rows.map((row) => ({
    table: String(row.relname),
    dead: Number(row.n_dead_tup),
    live: Number(row.n_live_tup),
  }));
}

export type EndFacts = {
  now: number;
  /** What the lists of all forms show, by id. */
  listed: Map<string, ListedSubmission>;
  /** What reading each acknowledged submission answers, by id. */
  statuses: Map<string, number>;
  texts: { table: string; text: string }[];
  /** What the counters of each form say, and how many rows it has. */
  counts: { formId: string; counted: number; stored: number }[];
  queue: { id: string; channel: string; kind: string; formId: string; error: string }[];
  waitingEvents: number;
  /** The submission that each upload's row belongs to, if any. */
  uploadRows: Map<string, string | undefined>;
  files: ReadonlyMap<string, Uint8Array>;
  /** How many rows each table has that are dead, and that are not. */
  dead: { table: string; dead: number; live: number }[];
};

type ListedSubmission = { id: string; formId: string; text: string; createdAt: number };
