import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

/** An address that wants no more mail, of one form or of the whole service. */
export const MailStopEntity = defineEntity({
  name: 'MailStop',
  tableName: 'mail_stops',
  properties: {
    address: text().primary(),
    /** The form's id, or empty for all mail of this service. */
    formId: id().primary(),
    createdAt: time(),
  },
});

export type MailStop = InferEntity<typeof MailStopEntity>;
