import { defineEntity, type InferEntity, raw } from '@mikro-orm/core';
import { id, text, time } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';

/** An owner who is signed in. The token itself is never stored. */
export const OwnerSessionEntity = defineEntity({
  name: 'OwnerSession',
  tableName: 'owner_sessions',
  properties: {
    /** SHA-256 of the session's token, hex. */
    tokenHash: id().primary(),
    /** As `addressKey` gives it. */
    address: text(),
    createdAt: time(),
    expiresAt: time(),
    /** Such as `Firefox, Linux`; empty if it is not known. */
    browser: text().default(''),
    /** Kept to the minute, see `touchOwnerSession`. */
    usedAt: time().strictNullable(),
  },
  indexes: [
    { name: 'owner_sessions_by_address', properties: ['address'] },
    { name: 'owner_sessions_by_end', properties: ['expiresAt'] },
  ],
});

export type OwnerSession = InferEntity<typeof OwnerSessionEntity>;

/** Written by versions before 2026-11-24-mailed-links: the links that had signed somebody in. */
export const UsedSignInLinkEntity = defineEntity({
  name: 'UsedSignInLink',
  tableName: 'used_sign_in_links',
  properties: {
    /** SHA-256 of the link's token, hex. */
    tokenHash: id().primary(),
    expiresAt: time(),
  },
  indexes: [{ name: 'used_sign_in_links_by_end', properties: ['expiresAt'] }],
});

/** Stores a session. */
export async function insertOwnerSession(db: Queries, session: OwnerSession): Promise<void> {
  await db.write((em) => em.insert(OwnerSessionEntity, session));
}

/** A session; null if it has been closed, or is over. */
export async function findOwnerSession(db: Queries, tokenHash: string): Promise<OwnerSession | null> {
  const where = { tokenHash, expiresAt: { $gt: raw('now()') } };
  return db.read((em) => em.findOne(OwnerSessionEntity, where));
}

/** The sessions of an address, the newest first. */
export async function listOwnerSessions(db: Queries, address: string): Promise<OwnerSession[]> {
  const where = { address, expiresAt: { $gt: raw('now()') } };
  const newest = { orderBy: { createdAt: 'desc' }, limit: MAX_LISTED } as const;
  return db.read((em) => em.find(OwnerSessionEntity, where, newest));
}

const MAX_LISTED = 100;

/** Notes that a session was used, at most once a minute. */
export async function touchOwnerSession(db: Queries, tokenHash: string): Promise<void> {
  const unused = [{ usedAt: null }, { usedAt: { $lt: raw("now() - interval '1 minute'") } }];
  const change = { usedAt: raw<Date>('now()') };
  await db.write((em) => em.nativeUpdate(OwnerSessionEntity, { tokenHash, $or: unused }, change));
}

/** Closes one session, or with an address alone all of its sessions; returns how many there were. */
export async function closeOwnerSessions(
  db: Queries,
  which: { tokenHash: string; address?: string } | { address: string },
): Promise<number> {
  return db.write((em) => em.nativeDelete(OwnerSessionEntity, which));
}
