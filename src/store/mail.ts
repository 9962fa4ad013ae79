import { defineEntity, p } from '@mikro-orm/core';
import { addressKey } from '../domain/email-address.ts';
import { id, text, time } from './database/columns.ts';
import { deleteSome, type Queries } from './database/queries.ts';

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
  db: Queries,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await db.execute(
    `insert into mail_recipients (form_id, address, created_at, confirmed_at) values ($1, $2, now(), now())
     on conflict (form_id, address) do update set confirmed_at = coalesce(mail_recipients.confirmed_at, now())`,
    [formId, addressKey(address)],
  );
}

/** The addresses that have confirmed, as `addressKey` gives them, by form. */
export async function listConfirmedRecipients(
  db: Queries,
  formIds: string[],
): Promise<{ formId: string; address: string }[]> {
  return db.read((em) =>
    em.find(
      MailRecipientEntity,
      { formId: { $in: formIds }, confirmedAt: { $ne: null } },
      { fields: ['formId', 'address'] },
    ),
  );
}

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
  db: Queries,
  { address, formId }: { address: string; formId: string | null },
): Promise<void> {
  await db.execute(
    `insert into mail_stops (address, form_id, created_at) values ($1, $2, now()) on conflict do nothing`,
    [addressKey(address), formId ?? ''],
  );
}

/** Whether an address has stopped a form's mail, or all mail. */
export async function isMailStopped(
  db: Queries,
  { address, formId }: { address: string; formId: string },
): Promise<boolean> {
  const where = { address: addressKey(address), formId: { $in: ['', formId] } };
  return (await db.read((em) => em.count(MailStopEntity, where))) > 0;
}

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

/**
 * Counts one mail of a kind to an address, if fewer than `limit` went there today (UTC).
 *
 * Returns null if it may go, else when the next day begins.
 */
export async function takeMailQuota(
  db: Queries,
  { address, kind, limit }: { address: string; kind: string; limit: number },
): Promise<{ waitMs: number } | null> {
  const [row] = await db.execute(
    `with taken as (
       insert into mail_quotas as q (address, day, kind, count)
       values ($1, ${TODAY}, $2, 1)
       on conflict (address, day, kind) do update set count = q.count + 1 where q.count < $3
       returning count
     )
     select (select count(*) from taken) as taken,
       extract(epoch from date_trunc('day', now() at time zone 'UTC') + interval '1 day'
         - (now() at time zone 'UTC')) * 1000 as wait_ms`,
    [addressKey(address), kind, limit],
  );
  return Number(row?.taken) > 0 ? null : { waitMs: Number(row?.wait_ms) };
}

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

/** Removes what counted mails of days gone by. Returns how many rows of each kind at most. */
export async function purgeMailCounts(db: Queries, limit: number): Promise<number> {
  const quotas = await deleteSome(db, 'mail_quotas', {
    key: 'address, day, kind',
    where: `day < ${TODAY}`,
    limit,
  });
  const answers = await deleteSome(db, 'autoresponses', {
    key: 'form_id, address',
    where: "sent_at < now() - interval '24 hours'",
    limit,
  });
  return Math.max(quotas.length, answers.length);
}

/** `YYYY-MM-DD`, in UTC. */
const TODAY = "to_char(now() at time zone 'UTC', 'YYYY-MM-DD')";
