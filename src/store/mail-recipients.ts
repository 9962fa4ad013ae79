import { defineEntity } from '@mikro-orm/core';
import { addressKey } from '../domain/email-address.ts';
import { id, text, time } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/** An address in a form's `delivery.to`; it gets mail only once it has confirmed. */
export const MailRecipientEntity = defineEntity({
  name: 'MailRecipient',
  tableName: 'mail_recipients',
  properties: {
    formId: id().primary(),
    address: text().primary(),
    createdAt: time(),
    confirmedAt: time().strictNullable(),
  },
});

/** Records that an address wants a form's mail, as it says by a link that only it was sent. Again is the same. */
export async function confirmRecipient(
  queries: Queries,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await queries.query(
    `insert into mail_recipients (form_id, address, created_at, confirmed_at) values ($1, $2, now(), now())
     on conflict (form_id, address) do update set confirmed_at = coalesce(mail_recipients.confirmed_at, now())`,
    [formId, addressKey(address)],
  );
}

/** The addresses that have confirmed, as `addressKey` gives them, by form. */
export async function listConfirmedRecipients(
  queries: Queries,
  formIds: string[],
): Promise<{ formId: string; address: string }[]> {
  return queries.read((em) =>
    em.find(
      MailRecipientEntity,
      { formId: { $in: formIds }, confirmedAt: { $ne: null } },
      { fields: ['formId', 'address'] },
    ),
  );
}
