import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, insertOf, rowsOf, sealed, text, time } from './database/columns.ts';
import type { Queries, Transaction } from './database/queries.ts';

/** What a request with an idempotency key made or changed, where the thing itself has no column for the key. */
export const IdempotencyKeyEntity = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_keys',
  properties: {
    /** SHA-256 of the key's owner, the call and the key, hex. */
    id: id().primary(),
    requestFingerprint: text(),
    /** The id of what was made; of a kept reply that of the session it is about, or empty. */
    madeId: id(),
    /** What the reply shows once, or the whole reply, sealed; null if it shows nothing. */
    secret: sealed().strictNullable(),
    createdAt: time(),
  },
  indexes: [{ name: 'idempotency_keys_by_age', properties: ['createdAt'] }],
});

export type IdempotencyKey = Omit<InferEntity<typeof IdempotencyKeyEntity>, 'createdAt'>;

/**
 * Notes what a request made, in the transaction that stores it. False if another request has made something with
 * the key: one that is under way is waited for.
 */
export async function insertIdempotencyKey(tx: Transaction, made: IdempotencyKey): Promise<boolean> {
  const rows = await tx.execute(
    `${insertion.sql} on conflict do nothing returning id`,
    insertion.values(made),
  );
  return rows.length > 0;
}

const insertion = insertOf(IdempotencyKeyEntity, () => ({ createdAt: 'now()' }));

/**
 * Finds what was made with a key. It is written to, so that the answer is as durable as the first one: a read may
 * be ahead of a synchronous standby.
 */
export async function findIdempotencyKey(db: Queries, keyId: string): Promise<IdempotencyKey | null> {
  const [row] = await db.execute(
    `update idempotency_keys set made_id = made_id where id = $1 returning ${keys.columns}`,
    [keyId],
    { repeatable: true },
  );
  return row === undefined ? null : keys.map(row);
}

const keys = rowsOf(IdempotencyKeyEntity);
