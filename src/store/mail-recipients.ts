import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { addressKey } from '../domain/email-address.ts';
import { id, text, time } from './columns.ts';
import type { Queries } from './queries.ts';

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

export type MailRecipient = InferEntity<typeof MailRecipientEntity>;

/**
 * Notes addresses that a form should mail, and returns which of them have not confirmed.
 *
 * Noting an address again keeps its confirmation.
 */
export async function noteRecipients(
  queries: Queries,
  formId: string,
  addresses: string[],
): Promise<string[]> {
  const rows = await queries.query(
    `with given as (select distinct unnest($2::text[]) as address),
     noted as (
       insert into mail_recipients (form_id, address, created_at)
       select $1, address, now() from given on conflict do nothing
     )
     select g.address from given g
     where not exists (
       select from mail_recipients r where r.form_id = $1 and r.address = g.address and r.confirmed_at is not null
     )`,
    [formId, addresses],
  );
  return rows.map((row) => String(row.address));
}

/** Confirms that an address wants a form's mail. Does nothing if it has, or was never asked. */
export async function confirmRecipient(
  queries: Queries,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await queries.query(
    `update mail_recipients set confirmed_at = now()
     where form_id = $1 and lower(address) = $2 and confirmed_at is null`,
    [formId, addressKey(address)],
  );
}

/** The addresses that have confirmed, by form. */
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
