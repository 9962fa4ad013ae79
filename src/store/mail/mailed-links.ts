import { defineEntity, type InferEntity, raw } from '@mikro-orm/core';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { id, text, time } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';

/** A mailed link that works once. Without its row, a token that is signed as it should be is worth nothing. */
export const MailedLinkEntity = defineEntity({
  name: 'MailedLink',
  tableName: 'mailed_links',
  properties: {
    /** SHA-256 of the link's token, hex. */
    tokenHash: id().primary(),
    purpose: text(),
    /** Empty for a link to sign in. */
    formId: id(),
    /** As `addressKey` gives it. */
    address: text(),
    /** SHA-256 of what only the browser has that asked for the link, hex; null if none did. */
    browserHash: text().strictNullable(),
    createdAt: time(),
    expiresAt: time(),
    usedAt: time().strictNullable(),
  },
  indexes: [
    { name: 'mailed_links_by_address', properties: ['address', 'formId'] },
    { name: 'mailed_links_by_end', properties: ['expiresAt'] },
  ],
});

type MailedLink = InferEntity<typeof MailedLinkEntity>;

/** Stores a link before it is mailed. */
export async function insertMailedLink(
  db: Queries,
  link: Omit<MailedLink, 'usedAt' | 'address'> & { address: string },
): Promise<void> {
  const row = { ...link, address: addressKey(link.address), usedAt: null };
  await db.write((em) => em.upsert(MailedLinkEntity, row, { onConflictAction: 'ignore' }));
}

/** What became of a link; null if it was never mailed, or was voided. */
export async function findMailedLink(
  db: Queries,
  tokenHash: string,
): Promise<Pick<MailedLink, 'browserHash' | 'usedAt'> | null> {
  return db.read((em) => em.findOne(MailedLinkEntity, { tokenHash }, { fields: ['browserHash', 'usedAt'] }));
}

/** Notes that a link was used, and says whether it was not before: of any number of calls at once, one uses it. */
export async function useMailedLink(tx: Transaction, tokenHash: string): Promise<boolean> {
  const unused = { tokenHash, usedAt: null, expiresAt: { $gt: raw('now()') } };
  const change = { usedAt: raw<Date>('now()') };
  return (await tx.write((em) => em.nativeUpdate(MailedLinkEntity, unused, change))) > 0;
}

/** Voids the links of an address: of one purpose, or about one form. */
export async function voidMailedLinks(
  db: Queries,
  { address, ...which }: { address: string; purpose?: string; formId?: string },
): Promise<void> {
  await db.write((em) => em.nativeDelete(MailedLinkEntity, { ...which, address: addressKey(address) }));
}
