import { defineEntity, p } from '@mikro-orm/core';
import { id } from './columns.ts';

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
