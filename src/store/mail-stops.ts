import { defineEntity } from '@mikro-orm/core';
import { addressKey } from '../domain/email-address.ts';
import { id, text, time } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

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

/** Stops a form's mail to an address, or without a form all of this service's. Stopping again changes nothing. */
export async function stopMail(
  queries: Queries,
  { address, formId }: { address: string; formId: string | null },
): Promise<void> {
  await queries.query(
    `insert into mail_stops (address, form_id, created_at) values ($1, $2, now()) on conflict do nothing`,
    [addressKey(address), formId ?? ''],
  );
}

/** Whether an address has stopped a form's mail, or all mail. */
export async function isMailStopped(
  queries: Queries,
  { address, formId }: { address: string; formId: string },
): Promise<boolean> {
  const rows = await queries.query(`select from mail_stops where address = $1 and form_id in ('', $2)`, [
    addressKey(address),
    formId,
  ]);
  return rows.length > 0;
}
