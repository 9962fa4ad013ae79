import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { text } from './columns.ts';

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

export type MailQuota = InferEntity<typeof MailQuotaEntity>;
