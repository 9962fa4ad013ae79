import { defineEntity } from '@mikro-orm/core';
import { id, text, time } from './database/columns.ts';

/** When a form last sent its autoresponse to an address: one in 24 hours. */
export const AutoresponseEntity = defineEntity({
  name: 'Autoresponse',
  tableName: 'autoresponses',
  properties: {
    formId: id().primary(),
    address: text().primary(),
    sentAt: time(),
  },
  indexes: [{ name: 'autoresponses_by_time', properties: ['sentAt'] }],
});
