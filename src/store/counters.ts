import { defineEntity, p } from '@mikro-orm/core';
import { id } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/**
 * How many submissions a form holds, spread over slots: each group insert adds to one slot, so that
 * processes seldom wait for each other's row lock. The count is the sum over the slots.
 */
export const CounterEntity = defineEntity({
  name: 'Counter',
  tableName: 'form_counters',
  properties: {
    formId: id().primary(),
    slot: p.smallint().primary(),
    /** A slot may be negative: a deletion subtracts from any one. */
    accepted: p.bigint('number').default(0),
    spam: p.bigint('number').default(0),
  },
});

/** Counts the submissions a form holds, without looking at them. */
export async function countSubmissions(
  db: Queries,
  formId: string,
): Promise<{ accepted: number; spam: number }> {
  const [row] = await db.query(
    `select coalesce(sum(accepted), 0)::float8 as accepted, coalesce(sum(spam), 0)::float8 as spam
     from form_counters where form_id = $1`,
    [formId],
  );
  return { accepted: Number(row?.accepted), spam: Number(row?.spam) };
}
