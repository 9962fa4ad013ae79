import { defineEntity, type InferEntity, p, raw } from '@mikro-orm/core';
import DataLoader from 'dataloader';
import { DEFAULT_PROJECT } from '../domain/scopes.ts';
import { id, rowsOf, text, time, toMillisecond } from './database/columns.ts';
import { findPage, type Page, type PageRequest, type Queries, type Transaction } from './database/queries.ts';

/** An API key. The text itself is never stored. */
export const KeyEntity = defineEntity({
  name: 'Key',
  tableName: 'api_keys',
  properties: {
    id: id().primary(),
    projectId: id(),
    name: text(),
    /** SHA-256 of the key's text, hex. */
    secretHash: text().unique('api_keys_secret_hash_unique'),
    /** The last four characters of the key's text, by which people recognize a key. */
    last4: text(),
    scopes: p.array(),
    createdAt: time(),
    expiresAt: time().strictNullable(),
    /** Kept to the minute, see `touchKey`. */
    lastUsedAt: time().strictNullable(),
    /** The id of the key that made it; null if none did, or before this was kept. */
    createdBy: id().strictNullable(),
  },
  indexes: [
    { name: 'api_keys_by_project', properties: ['projectId', 'id'] },
    { name: 'api_keys_by_maker', properties: ['createdBy'], where: 'created_by is not null' },
  ],
});

export type Key = InferEntity<typeof KeyEntity>;

/** A key that was deleted, permanently: BOOTSTRAP_API_KEY must not bring it back at the next start. */
export const RevokedKeyEntity = defineEntity({
  name: 'RevokedKey',
  tableName: 'revoked_keys',
  properties: {
    /** As that of the key was. */
    secretHash: text().primary(),
    revokedAt: time(),
  },
});

/** Stores a key. */
export async function insertKey(db: Queries, key: Key): Promise<void> {
  await db.write((em) => em.insert(KeyEntity, key));
}

/** Stores a key if there is none at all in the database, and says whether it did: once, however many ask. */
export async function insertFirstKey(tx: Transaction, key: Key): Promise<boolean> {
  await tx.execute('lock table api_keys in share row exclusive mode');
  if ((await tx.read((em) => em.count(KeyEntity))) > 0) return false;
  await insertKey(tx, key);
  return true;
}

/** Stores a key whose secret the database has never seen; `known` if it is there already, `revoked` if it was. */
export async function registerKey(tx: Transaction, key: Key): Promise<'registered' | 'known' | 'revoked'> {
  // Processes that start at once take turns, and so does a call that revokes the key.
  await tx.execute('lock table api_keys in share row exclusive mode');
  const { secretHash } = key;
  if ((await tx.read((em) => em.count(KeyEntity, { secretHash }))) > 0) return 'known';
  if ((await tx.read((em) => em.count(RevokedKeyEntity, { secretHash }))) > 0) return 'revoked';
  await insertKey(tx, key);
  return 'registered';
}

/** Finds a key of any project, expired or not. */
export async function findKeyOfAny(db: Queries, keyId: string): Promise<Key | null> {
  return db.read((em) => em.findOne(KeyEntity, { id: keyId }));
}

/** Finds a key of a project, expired or not. */
export async function findKey(db: Queries, projectId: string, keyId: string): Promise<Key | null> {
  return db.read((em) => em.findOne(KeyEntity, { id: keyId, projectId }));
}

/** Finds the key with this id or SHA-256 (hex), unless it has expired by the database's clock. */
export async function findValidKey(
  db: Queries,
  by: { id: string } | { secretHash: string },
): Promise<Key | null> {
  const valid = { ...by, $or: [{ expiresAt: null }, { expiresAt: { $gt: raw('now()') } }] };
  return db.read((em) => em.findOne(KeyEntity, valid));
}

/**
 * Makes a look-up of whether there is a key with this SHA-256 (hex), expired or not: one query each tenth of a second.
 */
export function createKeyCheck(db: Queries): (secretHash: string) => Promise<boolean> {
  const loader = new DataLoader<string, boolean>(
    async (hashes) => {
      const where = { secretHash: { $in: [...hashes] } };
      const found = await db.read((em) => em.find(KeyEntity, where, { fields: ['secretHash'] }));
      const known = new Set(found.map(({ secretHash }) => secretHash));
      return hashes.map((hash) => known.has(hash));
    },
    { cache: false, maxBatchSize: 1_000, batchScheduleFn: (load) => setTimeout(load, 100) },
  );
  return (secretHash) => loader.load(secretHash);
}

/** Lists a project's keys, newest first, expired ones too. */
export async function listKeys(db: Queries, projectId: string, page: PageRequest): Promise<Page<Key>> {
  return findPage(db, page, (em, before, range) => em.find(KeyEntity, { projectId, ...before }, range));
}

/** As `listKeys`, of all projects. */
export async function listKeysOfAll(db: Queries, page: PageRequest): Promise<Page<Key>> {
  return findPage(db, page, (em, before, range) => em.find(KeyEntity, before, range));
}

/** Notes that a key was used, at most once a minute: calls in between change nothing. */
export async function touchKey(db: Queries, keyId: string): Promise<void> {
  const unused = [{ lastUsedAt: null }, { lastUsedAt: { $lt: raw("now() - interval '1 minute'") } }];
  const change = { lastUsedAt: raw('now()') };
  await db.write((em) => em.nativeUpdate(KeyEntity, { id: keyId, $or: unused }, change));
}

/** Whether a key is there; it stays until the transaction ends, so that what it makes is found when it is revoked. */
export async function holdKey(tx: Transaction, keyId: string): Promise<boolean> {
  const rows = await tx.execute('select id from api_keys where id = $1 for key share', [keyId]);
  return rows.length > 0;
}

/** The keys that still work and were made by a key, by those that it made, and so on. */
export async function listKeysMadeBy(db: Queries, keyId: string): Promise<Key[]> {
  const rows = await db.select(
    `with recursive made as (
       select * from api_keys where created_by = $1
       union select k.* from api_keys k join made on k.created_by = made.id)
     select ${keys.columns} from made where expires_at is null or expires_at > now() order by id`,
    [keyId],
  );
  return rows.map(keys.map);
}

const keys = rowsOf(KeyEntity);

/**
 * The key whose allowance another one uses up: the first of those that made it, one after the other, so that nobody
 * gets more by making keys. What the operator's keys make has allowances of its own.
 */
export async function findFirstMaker(db: Queries, keyId: string): Promise<string> {
  const [first] = await db.select(
    `with recursive chain as (
       select id, created_by, 0 as depth from api_keys where id = $1
       union all select k.id, k.created_by, depth + 1 from chain join api_keys k on k.id = chain.created_by
         join projects p on p.id = k.project_id where not ('*' = any(k.scopes) and p.name = '${DEFAULT_PROJECT}'))
     select id from chain order by depth desc limit 1`,
    [keyId],
  );
  return first === undefined ? keyId : String(first.id);
}

/**
 * Deletes a key, but for its hash among the revoked ones, and with `children` those that it made, and so on.
 * Returns those that were deleted, none if there is no such key.
 */
export async function revokeKey(
  tx: Transaction,
  keyId: string,
  options: { children: boolean },
): Promise<Key[]> {
  const revoked: Key[] = [];
  const found = [keyId];
  for (const id of found) {
    // Waits for the transactions of `holdKey`: what they have made is there for the next statement.
    const rows = await tx.execute(
      `with deleted as (delete from api_keys where id = $1 returning *),
         revoked as (insert into revoked_keys (secret_hash, revoked_at)
           select secret_hash, ${toMillisecond('now()')} from deleted on conflict do nothing)
       select ${keys.columns} from deleted`,
      [id],
    );
    revoked.push(...rows.map(keys.map));
    if (!options.children) break;
    const made = await tx.select('select id from api_keys where created_by = $1', [id]);
    found.push(...made.map((row) => String(row.id)));
  }
  return revoked;
}
