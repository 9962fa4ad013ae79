import { p } from '@mikro-orm/core';
import type { JsonObject } from '../../domain/json/json.ts';

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

/** The object in a `json` column of a statement's row. The columns hold nothing else. */
export function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null) throw new TypeError('Not an object from the database');
  return value as JsonObject;
}

/** As `objectOf`, for a column that may be null. */
export function objectOrNull(value: unknown): JsonObject | null {
  return value === null || value === undefined ? null : objectOf(value);
}

/** The list in a `json` column of a statement's row that may be null. The column holds nothing else. */
export function listOrNull<Item>(value: unknown): Item[] | null {
  return Array.isArray(value) ? value : null;
}

/** A time out of a statement's row, which gives times as text. */
export function timeOf(value: unknown): Date {
  if (value instanceof Date) return value;
  const time = new Date(String(value));
  if (Number.isNaN(time.getTime())) throw new TypeError(`Not a time from the database: ${String(value)}`);
  return time;
}

/** As `timeOf`, for a column that may be null. */
export function timeOrNull(value: unknown): Date | null {
  return value === null || value === undefined ? null : timeOf(value);
}

/** A text out of a statement's row; null if the column is. */
export function textOrNull(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return null;
  throw new TypeError('Not a text from the database');
}

export type { JsonObject } from '../../domain/json/json.ts';
