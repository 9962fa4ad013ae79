import { p } from '@mikro-orm/core';
import type { JsonObject } from '../../domain/json.ts';

/** A column holding a prefixed id: text compared by its bytes, so that the order of ids is the order of time. */
export const id = () => p.string().columnType('text').collation('C');

/** A column of plain text. */
export const text = () => p.string().columnType('text');

/** A point in time, to the millisecond as JavaScript and the interface have it. */
export const time = () => p.datetime(3);

/** SQL that cuts a time to the millisecond. A `time` column rounds, so that `now()` could be stored as later. */
export const toMillisecond = (sql: string) => `date_trunc('milliseconds', ${sql})`;

/**
 * JSON that is kept as it was written: `json`, not `jsonb`, keeps the order of the properties and
 * costs a group insert less. Nothing searches inside these columns.
 */
export const json = <T>() => p.json<T>().columnType('json');

export type { JsonObject } from '../../domain/json.ts';

/** The object in a `json` column of a row of `query`. The columns hold nothing else. */
export function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null) throw new TypeError('Not an object from the database');
  return value as JsonObject;
}
