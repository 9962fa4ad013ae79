import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time, timeOf } from '../database/columns.ts';
import { deleteSome, type Queries, type Transaction } from '../database/queries.ts';

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
  },
  indexes: [
    { name: 'owner_sessions_by_address', properties: ['address'] },
    { name: 'owner_sessions_by_end', properties: ['expiresAt'] },
  ],
});

type OwnerSession = InferEntity<typeof OwnerSessionEntity>;

/** A link that has signed somebody in and works no more. Kept until it would have expired. */
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

/** Stores a session, unless the link that opens it was used before: of any number of calls at once, one does. */
export async function openOwnerSession(
  tx: Transaction,
  link: { tokenHash: string; expiresAt: Date },
  session: OwnerSession,
): Promise<boolean> {
  const used = await tx.execute(
    `insert into used_sign_in_links (token_hash, expires_at) values ($1, $2) on conflict do nothing
     returning token_hash`,
    [link.tokenHash, link.expiresAt],
  );
  if (used.length === 0) return false;
  await tx.write((em) => em.insert(OwnerSessionEntity, session));
  return true;
}

/** Whether a link has been used. */
export async function isSignInLinkUsed(db: Queries, tokenHash: string): Promise<boolean> {
  return (await db.read((em) => em.count(UsedSignInLinkEntity, { tokenHash }))) > 0;
}

/** Whose session this is, and when it ends; null if it has been closed. */
export async function findOwnerSession(
  db: Queries,
  tokenHash: string,
): Promise<{ address: string; expiresAt: Date } | null> {
  const [row] = await db.select(
    'select address, expires_at from owner_sessions where token_hash = $1',
    [tokenHash],
    { prepared: true },
  );
  return row === undefined ? null : { address: String(row.address), expiresAt: timeOf(row.expires_at) };
}

/** Closes one session, or with an address all of its sessions. */
export async function closeOwnerSessions(
  db: Queries,
  which: { tokenHash: string } | { address: string },
): Promise<void> {
  await db.write((em) => em.nativeDelete(OwnerSessionEntity, which));
}

/** Removes at most `limit` rows of each kind whose time is over. Returns how many it removed of the larger group. */
export async function purgeOwnerSessions(db: Queries, limit: number): Promise<number> {
  const ended = { key: 'token_hash', where: 'expires_at <= now()', orderBy: 'expires_at', limit };
  const sessions = await deleteSome(db, 'owner_sessions', ended);
  const links = await deleteSome(db, 'used_sign_in_links', ended);
  return Math.max(sessions.length, links.length);
}
