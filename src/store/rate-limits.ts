import { defineEntity, p } from '@mikro-orm/core';
import { text, time } from './columns.ts';

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
