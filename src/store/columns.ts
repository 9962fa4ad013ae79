import { p } from '@mikro-orm/core';

/** A column holding a prefixed id: text compared by its bytes, so that the order of ids is the order of time. */
export const id = () => p.string().columnType('text').collation('C');

/** A column of plain text. */
export const text = () => p.string().columnType('text');

/** A point in time, to the millisecond as JavaScript and the interface have it. */
export const time = () => p.datetime(3);

/**
 * JSON that is kept as it was written: `json`, not `jsonb`, keeps the order of the properties and
 * costs a group insert less. Nothing searches inside these columns.
 */
export const json = <T>() => p.json<T>().columnType('json');

export type { JsonObject } from '../domain/json.ts';
