import { defineEntity, p } from '@mikro-orm/core';
import { text, time, timeOf } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/** Calls counted in the database, so that a limit holds over any number of processes. */
export const RateLimitEntity = defineEntity({
  name: 'RateLimit',
  tableName: 'rate_limits',
  properties: {
    /** What is limited and whose, such as `create:192.0.2.1`. */
    key: text().primary(),
    hits: p.integer(),
    /** When the window ends and the count begins again. */
    resetsAt: time(),
  },
  indexes: [{ name: 'rate_limits_by_end', properties: ['resetsAt'] }],
});

/**
 * Counts one call under `key`, in windows of `seconds` that begin with the first call. Tells how many
 * there were in the present window, this one included, and how long the window still lasts.
 */
export async function countCall(db: Queries, key: string, seconds: number): Promise<CallCount> {
  // A write: reads may have to wait for those of others.
  const [time] = await db.execute('select now() as now', [], { repeatable: true });
  const now = timeOf(time?.now);
  const [row] = await db.execute(
    `insert into rate_limits as r (key, hits, resets_at) values ($1, 1, $2)
     on conflict (key) do update set
       hits = case when r.resets_at <= $3 then 1 else r.hits + 1 end,
       resets_at = case when r.resets_at <= $3 then excluded.resets_at else r.resets_at end
     returning hits, resets_at`,
    [key, new Date(now.getTime() + seconds * 1000).toISOString(), now.toISOString()],
  );
  return { hits: Number(row?.hits), endsInMs: Math.max(0, timeOf(row?.resets_at).getTime() - now.getTime()) };
}

/** `hits` includes the call just counted. */
export type CallCount = { hits: number; endsInMs: number };
