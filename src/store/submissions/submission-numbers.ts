import { DAY_MS } from '../../domain/durations.ts';
import { smallestIdAt } from '../../domain/ids.ts';
import type { Queries } from '../database/queries.ts';

/**
 * The number of each submission among the accepted ones of its form and day (UTC), by id; without those above 1,000, of
 * which nobody wants to know it.
 */
export async function numbersOfDay(db: Queries, submissions: Numbered[]): Promise<Map<string, number>> {
  if (submissions.length === 0) return new Map();
  const rows = await db.select(
    `select x.id, base.n + row_number() over (partition by g.form_id, g.start order by x.id) as n
     from json_to_recordset($1::json) as g(form_id text, start text, first text, last text)
     cross join lateral (
       select count(*) as n from (
         select from submissions where form_id = g.form_id and status = 'accepted' and id >= g.start and id < g.first
         limit $2
       ) before
     ) base
     cross join lateral (
       select id from submissions where form_id = g.form_id and status = 'accepted' and id between g.first and g.last
       order by id limit $2
     ) x`,
    [JSON.stringify(groupsOf(submissions)), MOST],
  );
  const wanted = new Set(submissions.map(({ id }) => id));
  return new Map(
    rows.flatMap(({ id, n }) => {
      const number = Number(n);
      return wanted.has(String(id)) && number <= MOST ? [[String(id), number] as const] : [];
    }),
  );
}

/** From the first to the last of the submissions of each form and day, so that those before them are counted once. */
function groupsOf(submissions: Numbered[]) {
  const groups = new Map<string, { form_id: string; start: string; first: string; last: string }>();
  for (const { formId, id, createdAt } of submissions) {
    const start = smallestIdAt('sub', Math.floor(createdAt.getTime() / DAY_MS) * DAY_MS);
    const key = `${formId} ${start}`;
    const { first, last } = groups.get(key) ?? { first: id, last: id };
    groups.set(key, { form_id: formId, start, first: id < first ? id : first, last: id > last ? id : last });
  }
  return [...groups.values()];
}

/** Bounds what one form costs. */
const MOST = 1000;

type Numbered = { formId: string; id: string; createdAt: Date };
