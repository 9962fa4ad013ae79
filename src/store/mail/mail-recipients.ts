import { defineEntity } from '@mikro-orm/core';
import { addressKey, mailboxOf } from '../../domain/addresses/email-address.ts';
import { SIGN_IN_MAILS } from '../../domain/links.ts';
import { id, text, time } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';

/** An address in a form's `delivery.to`, or that its owner has added; it gets emails only once it has confirmed. */
export const MailRecipientEntity = defineEntity({
  name: 'MailRecipient',
  tableName: 'mail_recipients',
  properties: {
    formId: id().primary(),
    address: text().primary(),
    createdAt: time(),
    confirmedAt: time().strictNullable(),
    /** The address as the form's owner wrote it, who has added it; null where the definition alone names it. */
    addedAs: text().strictNullable(),
  },
  indexes: [
    { name: 'mail_recipients_by_address', properties: ['address'], where: 'confirmed_at is not null' },
  ],
});

/** Records that an address wants a form's email, as it says by a link that only it was sent. Again is the same. */
export async function confirmRecipient(
  db: Queries,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await db.execute(
    `insert into mail_recipients (form_id, address, created_at, confirmed_at) values ($1, $2, now(), now())
     on conflict (form_id, address) do update set confirmed_at = coalesce(mail_recipients.confirmed_at, excluded.confirmed_at)`,
    [formId, addressKey(address)],
  );
}

/** The addresses that have confirmed, as `addressKey` gives them, by form. */
export async function listConfirmedRecipients(db: Queries, formIds: string[]): Promise<ConfirmedRecipient[]> {
  return db.read((em) =>
    em.find(
      MailRecipientEntity,
      { formId: { $in: formIds }, confirmedAt: { $ne: null } },
      { fields: ['formId', 'address', 'addedAs'] },
    ),
  );
}

/** Whether an address has confirmed to own a form that is there, or to want a form's submissions. */
export async function hasConfirmed(db: Queries, address: string): Promise<boolean> {
  const rows = await db.select(
    `select 1 as one from forms
     where lower(owner_email) = $1 and owner_confirmed_at is not null and deleted_at is null
     union all select 1 from mail_recipients where address = $1 and confirmed_at is not null
     limit 1`,
    [addressKey(address)],
  );
  return rows.length > 0;
}

/** The recipients that a form's owner has added, in the order of their addresses. */
export async function listAddedRecipients(
  db: Queries,
  formId: string,
): Promise<{ address: string; confirmed: boolean }[]> {
  const found = await db.read((em) =>
    em.find(MailRecipientEntity, { formId, addedAs: { $ne: null } }, { orderBy: { address: 'asc' } }),
  );
  return found.map(({ address, addedAs, confirmedAt }) => ({
    address: addedAs ?? address,
    confirmed: confirmedAt !== null,
  }));
}

/**
 * Adds a recipient of a form, if it has fewer than `max`. Of one that was added before, nothing changes. The form is to
 * be locked, so that of calls at once one counts after the other.
 */
export async function addRecipient(
  tx: Transaction,
  { formId, address, max }: { formId: string; address: string; max: number },
): Promise<'added' | 'known' | 'full'> {
  const added = await listAddedRecipients(tx, formId);
  if (added.some((known) => addressKey(known.address) === addressKey(address))) return 'known';
  if (added.length >= max) return 'full';
  await tx.execute(
    `insert into mail_recipients (form_id, address, created_at, added_as) values ($1, $2, now(), $3)
     on conflict (form_id, address) do update set added_as = excluded.added_as`,
    [formId, addressKey(address), address],
  );
  return 'added';
}

/**
 * Removes a recipient that was added; to get emails again it has to confirm again. Where the definition names it, too,
 * it stays one of these.
 */
export async function removeRecipient(
  db: Queries,
  { formId, address, inDefinition }: { formId: string; address: string; inDefinition: boolean },
): Promise<void> {
  const added = { formId, address: addressKey(address), addedAs: { $ne: null } };
  await db.write((em) =>
    inDefinition
      ? em.nativeUpdate(MailRecipientEntity, added, { addedAs: null })
      : em.nativeDelete(MailRecipientEntity, added),
  );
}

/** Removes all recipients that an owner of a form has added, but those that the definition names, too. */
export async function removeAddedRecipients(db: Queries, formId: string, named: string[]): Promise<void> {
  const added = { formId, addedAs: { $ne: null } };
  const address = { $nin: named.map(addressKey) };
  await db.write((em) => em.nativeDelete(MailRecipientEntity, { ...added, address }));
  await db.write((em) => em.nativeUpdate(MailRecipientEntity, added, { addedAs: null }));
}

/** `addedAs` is the address as the form's owner wrote it, who has added it. */
export type ConfirmedRecipient = { formId: string; address: string; addedAs: string | null };

/** An address that wants no more emails, of one form or of the whole service. */
export const MailStopEntity = defineEntity({
  name: 'MailStop',
  tableName: 'mail_stops',
  properties: {
    address: text().primary(),
    /** The form's id, or empty for all forms and what else nobody asked for, or `UNASKED`, or `SIGN_IN_MAILS`. */
    formId: id().primary(),
    createdAt: time(),
  },
});

/** In place of a form: all emails but those by which owners sign in. */
const ALL = '';

/** In place of a form: what nobody of a mailbox has asked for, to whichever of its addresses. */
const UNASKED = 'unasked';

/**
 * Stops email to an address: a form's; or all of this service's but the links to sign in that owners ask for, and then
 * also what its mailbox has not asked for by any other address; or these links, too. Stopping again changes nothing;
 * returns whether it was new.
 */
export async function stopMail(
  db: Queries,
  { address, formId, scope = 'form' }: { address: string; formId: string; scope?: StopScope },
): Promise<boolean> {
  const own = addressKey(address);
  const all = [
    { address: own, form_id: ALL },
    { address: mailboxOf(address), form_id: UNASKED },
  ];
  const stops = {
    form: [{ address: own, form_id: formId }],
    all,
    everything: [...all, { address: own, form_id: SIGN_IN_MAILS }],
  };
  const stopped = await db.execute(
    `insert into mail_stops (address, form_id, created_at)
     select address, form_id, now() from json_to_recordset($1::json) as s(address text, form_id text)
     on conflict do nothing returning form_id`,
    [JSON.stringify(stops[scope])],
  );
  return stopped.length > 0;
}

/**
 * Takes back that an address wants no email of a form, whether it stopped these emails alone or more. False if it had
 * not.
 */
export async function startMail(
  db: Queries,
  { address, formId }: { address: string; formId: string },
): Promise<boolean> {
  const own = addressKey(address);
  const stopped = await findStoppedScope(db, { address, formId });
  const isForm = stopped === null || stopped === 'form';
  const formIds = isForm ? [formId] : [formId, ALL, ...(stopped === 'everything' ? [SIGN_IN_MAILS] : [])];
  const ofMailbox = isForm ? [] : [{ address: mailboxOf(address), formId: UNASKED }];
  const where = { $or: [{ address: own, formId: { $in: formIds } }, ...ofMailbox] };
  return (await db.write((em) => em.nativeDelete(MailStopEntity, where))) > 0;
}

/** How much of a form's email, and of that beside it, an address has stopped; null if it gets that form's. */
export async function findStoppedScope(
  db: Queries,
  { address, formId }: { address: string; formId: string },
): Promise<StopScope | null> {
  const where = { address: addressKey(address), formId: { $in: [formId, ALL, SIGN_IN_MAILS] } };
  const stops = await db.read((em) => em.find(MailStopEntity, where, { fields: ['formId'] }));
  const stopped = new Set(stops.map((stop) => stop.formId));
  if (stopped.has(ALL)) return stopped.has(SIGN_IN_MAILS) ? 'everything' : 'all';
  return stopped.has(formId) ? 'form' : null;
}

/** Whether an address has stopped a form's email, or all emails. `unasked`: nobody has asked for the email. */
export async function isMailStopped(
  db: Queries,
  { address, formId, unasked = false }: { address: string; formId: string; unasked?: boolean },
): Promise<boolean> {
  const formIds = formId === SIGN_IN_MAILS ? [formId] : [ALL, formId];
  const own = { address: addressKey(address), formId: { $in: formIds } };
  const where = unasked ? { $or: [own, { address: mailboxOf(address), formId: UNASKED }] } : own;
  return (await db.read((em) => em.count(MailStopEntity, where))) > 0;
}

/** What an address stops. */
export type StopScope = 'form' | 'all' | 'everything';
