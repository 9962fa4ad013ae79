import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

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
    /** The last four characters of the key's text, for people to tell keys apart. */
    last4: text(),
    scopes: p.array(),
    createdAt: time(),
    expiresAt: time().nullable(),
    /** Kept to the minute, see `touchKey`. */
    lastUsedAt: time().nullable(),
  },
  indexes: [{ name: 'api_keys_by_project', properties: ['projectId', 'id'] }],
});

export type Key = InferEntity<typeof KeyEntity>;
