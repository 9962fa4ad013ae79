import { defineEntity, p } from '@mikro-orm/core';
import { addressKey } from '../domain/email-address.ts';
import { text } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/** How many mails of a kind went to an address on a day (UTC). */
export const MailQuotaEntity = defineEntity({
  name: 'MailQuota',
  tableName: 'mail_quotas',
  properties: {
    address: text().primary(),
    /** `YYYY-MM-DD`. */
    day: text().primary(),
    kind: text().primary(),
    count: p.integer().default(0),
  },
  indexes: [{ name: 'mail_quotas_by_day', properties: ['day'] }],
});

/**
 * Counts one mail of a kind to an address, if fewer than `limit` went there today (UTC).
 *
 * Returns null if it may go, else when the next day begins.
 */
export async function takeMailQuota(
  queries: Queries,
  { address, kind, limit }: { address: string; kind: string; limit: number },
): Promise<{ waitMs: number } | null> {
  const [row] = await queries.query(
    `with taken as (
       insert into mail_quotas as q (address, day, kind, count)
       values ($1, to_char(now() at time zone 'UTC', 'YYYY-MM-DD'), $2, 1)
       on conflict (address, day, kind) do update set count = q.count + 1 where q.count < $3
       returning count
     )
     select (select count(*) from taken) as taken,
       extract(epoch from date_trunc('day', now() at time zone 'UTC') + interval '1 day'
         - (now() at time zone 'UTC')) * 1000 as wait_ms`,
    [addressKey(address), kind, limit],
  );
  return Number(row?.taken) > 0 ? null : { waitMs: Number(row?.wait_ms) };
}
