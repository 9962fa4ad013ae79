import { defineEntity, type InferEntity, LockMode, raw } from '@mikro-orm/core';
import { KEYLESS_CREATOR } from '../../domain/ids.ts';
import { id, rowsOf, text, textOrNull, time } from '../database/columns.ts';
import {
  type Page,
  type PageRequest,
  pageOf,
  type Queries,
  type Row,
  type Transaction,
} from '../database/queries.ts';
import { type FormCounts, FormEntity, findAnyForm, withCounts } from '../forms/forms.ts';

/**
 * Notes who shall own the form once the address confirms, and says whether there is such a form. With `owner`, the
 * address of the owner who offers it, only while it is still theirs.
 */
export async function proposeOwner(
  db: Queries,
  projectId: string,
  formId: string,
  email: string,
  owner?: string,
): Promise<boolean> {
  const where = {
    id: formId,
    projectId,
    deletedAt: null,
    ...(owner !== undefined && { ownerEmail: owner }),
  };
  const change = { pendingOwnerEmail: email, updatedAt: raw('now()') };
  return (await db.write((em) => em.nativeUpdate(FormEntity, where, change))) > 0;
}

/** Takes back that a form, which the caller has locked, was offered; returns to whom it was. */
export async function withdrawOffer(tx: Transaction, formId: string): Promise<string | undefined> {
  const form = await findAnyForm(tx, formId);
  const change = { pendingOwnerEmail: null, updatedAt: raw('now()') };
  if (form?.pendingOwnerEmail) await tx.write((em) => em.nativeUpdate(FormEntity, { id: formId }, change));
  return form?.pendingOwnerEmail ?? undefined;
}

/**
 * Records that an address followed its confirmation link: the owner is confirmed, or the proposed owner
 * takes over. Returns who owned the form before; null if the address is neither of them any more.
 */
export async function confirmOwner(db: Queries, formId: string, email: string): Promise<FormerOwner | null> {
  const [row] = await db.execute(
    `with before as (select id, owner_email, owner_confirmed_at from forms where id = $1 for update)
     update forms f set
       owner_confirmed_at = case when f.owner_email = $2 then coalesce(f.owner_confirmed_at, now()) else now() end,
       owner_epoch = f.owner_epoch + case when f.owner_email = $2 then 0 else 1 end,
       owner_email = $2,
       pending_owner_email = nullif(f.pending_owner_email, $2),
       read_up_to = case when f.owner_email = $2 then f.read_up_to end,
       created_from = null,
       updated_at = now()
     from before where f.id = before.id and (f.owner_email = $2 or f.pending_owner_email = $2)
       and f.deleted_at is null
     returning before.owner_email, before.owner_confirmed_at`,
    [formId, email],
  );
  if (row === undefined) return null;
  return { address: textOrNull(row.owner_email), isConfirmed: row.owner_confirmed_at !== null };
}

/** Who owned a form until it was confirmed or taken over, perhaps the same as after, or nobody. */
type FormerOwner = { address: string | null; isConfirmed: boolean };

/** A project can have thousands of forms, but few people own them. */
const MAX_OWNERS = 20;

/**
 * Confirmed owners of a form, or of a project's forms, that was made with a key: whom to tell about a webhook.
 * Anybody can own a form of the project that was made without one. At most `MAX_OWNERS`.
 */
export async function listOwners(
  db: Queries,
  { projectId, formId }: { projectId: string; formId: string | null },
): Promise<{ formId: string; address: string }[]> {
  const rows = await db.select(
    `select distinct on (owner_email) id, owner_email from forms
     where project_id = $1 and ($2::text is null or id = $2) and created_by <> '${KEYLESS_CREATOR}'
       and owner_confirmed_at is not null and owner_email is not null and deleted_at is null
     order by owner_email, id limit $3`,
    [projectId, formId, MAX_OWNERS],
  );
  return rows.map((row) => ({ formId: String(row.id), address: String(row.owner_email) }));
}

/** Lists the activated forms that an address owns, newest first. `address` is as `addressKey` gives it. */
export async function listOwnedForms(
  db: Queries,
  address: string,
  page: PageRequest,
): Promise<Page<OwnedForm>> {
  const rows = await db.select(
    `select ${ownedColumns} from ${ownedForms} and ($2 = '' or f.id < $2) order by f.id desc limit $3`,
    [address, page.cursor ?? '', page.limit + 1],
  );
  return pageOf(rows.map(toOwnedForm), page.limit);
}

/** Finds an activated form that an address owns. */
export async function findOwnedForm(db: Queries, address: string, formId: string): Promise<OwnedForm | null> {
  const [row] = await db.select(`select ${ownedColumns} from ${ownedForms} and f.id = $2`, [address, formId]);
  return row === undefined ? null : toOwnedForm(row);
}

/**
 * Locks a form, so that its owner stays the same until the transaction ends, and says whether it still belongs to whom
 * it belonged to when it was read.
 */
export async function lockOwnedForm(tx: Transaction, { id, ownerEmail }: OwnedForm): Promise<boolean> {
  const options = { fields: ['id'], lockMode: LockMode.PESSIMISTIC_WRITE } as const;
  const where = { id, ownerEmail, deletedAt: null };
  return (await tx.read((em) => em.findOne(FormEntity, where, options))) !== null;
}

/** Notes up to which submission an owner has read; an earlier one than before changes nothing. */
export async function markRead(db: Queries, formId: string, submissionId: string): Promise<void> {
  const change = { readUpTo: raw("greatest(coalesce(read_up_to, ''), ?)", [submissionId]) };
  await db.write((em) => em.nativeUpdate(FormEntity, { id: formId }, change));
}

/** Whether an address owns activated forms, and has confirmed that it owns one of them. */
export async function findOwnerStanding(
  db: Queries,
  address: string,
): Promise<'confirmed' | 'unconfirmed' | 'none'> {
  const [row] = await db.select(
    `select count(*) as forms, count(f.owner_confirmed_at) as confirmed
     from (select owner_confirmed_at from forms where lower(owner_email) = $1 and activated_at is not null
       and deleted_at is null order by owner_confirmed_at nulls last limit 1) f`,
    [address],
  );
  if (Number(row?.forms) === 0) return 'none';
  return Number(row?.confirmed) > 0 ? 'confirmed' : 'unconfirmed';
}

const ownedForms = `forms f ${withCounts}
  where lower(f.owner_email) = $1 and f.activated_at is not null and f.deleted_at is null`;

const owned = rowsOf(
  FormEntity,
  [
    'id',
    'projectId',
    'name',
    'status',
    'createdBy',
    'currentVersionId',
    'ownerEmail',
    'ownerConfirmedAt',
    'pendingOwnerEmail',
    'closedAt',
    'key',
    'managedBy',
    'readUpTo',
    'ignoredNames',
    'createdAt',
  ],
  'f',
);

/** More are as good as that many. */
const MAX_UNREAD = 100;

const ownedColumns = `${owned.columns}, c.accepted, c.spam,
  (select count(*)::int from (select 1 from submissions s where s.form_id = f.id and s.status = 'accepted'
    and s.id > coalesce(f.read_up_to, '') limit ${MAX_UNREAD}) unread) as unread`;

/** The row of an activated form has what the form of the type has. */
const toOwnedForm = (row: Row) => owned.map(row) as OwnedForm;

/** What the owner of a form sees of it; it was activated. */
export type OwnedForm = ReturnType<typeof owned.map> &
  FormCounts & {
    status: 'published' | 'archived';
    currentVersionId: string;
    /** As it was given, for emails. */
    ownerEmail: string;
    /** How many came after `readUpTo`, up to `MAX_UNREAD`. */
    unread: number;
  };

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

/** Written by versions before 2026-11-24-emailed-links: the links that had signed somebody in. */
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
