import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, text, time } from './database/columns.ts';

/** One try of a delivery. */
export const AttemptEntity = defineEntity({
  name: 'Attempt',
  tableName: 'attempts',
  properties: {
    id: id().primary(),
    deliveryId: id(),
    /** 1, 2, 3 … within the delivery; a replay counts on. */
    number: p.integer(),
    status: p.enum(['delivered', 'failed']).columnType('text'),
    responseStatus: p.integer().strictNullable(),
    error: text().strictNullable(),
    /** The first 2 KiB of the receiver's answer. */
    responseBody: text().strictNullable(),
    durationMs: p.integer(),
    startedAt: time(),
  },
  indexes: [{ name: 'attempts_by_delivery', properties: ['deliveryId', 'number'] }],
});

export type Attempt = InferEntity<typeof AttemptEntity>;
