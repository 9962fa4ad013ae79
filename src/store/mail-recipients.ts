import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

/** An address in a form's `delivery.to`; it gets mail only once it has confirmed. */
export const MailRecipientEntity = defineEntity({
  name: 'MailRecipient',
  tableName: 'mail_recipients',
  properties: {
    formId: id().primary(),
    address: text().primary(),
    createdAt: time(),
    confirmedAt: time().nullable(),
  },
});

export type MailRecipient = InferEntity<typeof MailRecipientEntity>;
