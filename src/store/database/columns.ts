import {
  BigIntType,
  DateTimeType,
  type EntitySchema,
  type InferEntity,
  JsonType,
  p,
  UnderscoreNamingStrategy,
} from '@mikro-orm/core';
import type { JsonObject } from '../../domain/json/json.ts';
import type { Row } from './queries.ts';

/** A column holding a prefixed id: text compared by its bytes, so that the order of ids is the order of time. */
export const id = () => p.string().columnType('text').collation('C');

/** A column of plain text. */
export const text = () => p.string().columnType('text');

/** A text that is sealed by the service's key: it is in no export. */
export const sealed = () => text().groups(SEALED);

const SEALED = 'sealed';

/** A point in time, to the millisecond as JavaScript and the interface have it. */
export const time = () => p.datetime(3);

/** SQL that cuts a time to the millisecond. A `time` column rounds, so that `now()` could be stored as later. */
export const toMillisecond = (sql: string) => `date_trunc('milliseconds', ${sql})`;

/**
 * JSON that is kept as it was written: `json`, not `jsonb`, keeps the order of the properties and
 * costs a group insert less. Nothing searches inside these columns.
 */
export const json = <T>() => p.json<T>().columnType('json');

/**
 * Reads properties of an entity, all unless named, by statements of one's own: `columns` is what these select or
 * return, of the table with that alias if one is given, and `map` makes their rows the entity's, each out of the row
 * itself. Other columns of a row are left as they are.
 */
export function rowsOf<Entity extends EntitySchema, const Key extends keyof InferEntity<Entity> & string>(
  entity: Entity,
  keys?: readonly Key[],
  alias?: string,
): RowReader<Pick<InferEntity<Entity>, Key>> {
  const properties = new Map<string, { type?: unknown }>(Object.entries(entity.meta.properties));
  const names = keys ?? [...properties.keys()];
  const columns = names.map((key) => {
    const column = columnOf(key);
    return `${alias === undefined ? '' : `${alias}.`}${column}${column === key ? '' : ` as "${key}"`}`;
  });
  const converted = names.flatMap((key) => {
    const type = properties.get(key)?.type;
    if (type === DateTimeType) return { key, convert: timeOf };
    return type instanceof BigIntType ? { key, convert: Number } : [];
  });
  return {
    columns: columns.join(', '),
    // Not copied: objects made key by key take twice the time of the whole.
    map: (row) => {
      for (const { key, convert } of converted) if (row[key] !== null) row[key] = convert(row[key]);
      // The statement has selected what the type says.
      return row as Pick<InferEntity<Entity>, Key>;
    },
  };
}

/**
 * An insert of one row of an entity by a statement of one's own. A column has what the row does, else its default or
 * null; those `made` by SQL may use what the row has beside the entity's properties, by the `parameter` of its name.
 */
export function insertOf<Entity extends EntitySchema>(
  { meta }: Entity,
  made: (parameter: (name: string) => string) => { [Key in keyof InferEntity<Entity>]?: string },
): { sql: string; values: (row: object) => unknown[] } {
  const properties = new Map<string, { type?: unknown; default?: unknown }>(Object.entries(meta.properties));
  const names = new Set<string>();
  const parameter = (name: string) => `$${[...names.add(name)].indexOf(name) + 1}`;
  const bySql: Record<string, string | undefined> = made(parameter);
  const keys = [...properties.keys()];
  const columns = keys.map(columnOf).join(', ');
  const expressions = keys.map((key) => bySql[key] ?? parameter(key)).join(', ');
  return {
    sql: `insert into ${meta.tableName} (${columns}) values (${expressions})`,
    values: (row) => {
      const given = new Map<string, unknown>(Object.entries(row));
      return [...names].map((name) => {
        const property = properties.get(name);
        const value = given.get(name) ?? property?.default ?? null;
        return property?.type === JsonType && value !== null ? JSON.stringify(value) : value;
      });
    },
  };
}

/** The columns of an entity. */
export function columnsOf({ meta }: EntitySchema): string[] {
  return Object.keys(meta.properties).map(columnOf);
}

/** Those that hold sealed texts. */
export function sealedColumnsOf({ meta }: EntitySchema): string[] {
  const properties = Object.entries<{ groups?: string[] }>(meta.properties);
  return properties.flatMap(([key, { groups = [] }]) => (groups.includes(SEALED) ? columnOf(key) : []));
}

const naming = new UnderscoreNamingStrategy();
const columnOf = (key: string) => naming.propertyToColumnName(key);

/** The properties of an entity but some. */
export function keysWithout<
  Entity extends EntitySchema,
  const Key extends keyof InferEntity<Entity> & string,
>(entity: Entity, without: readonly Key[]): Exclude<keyof InferEntity<Entity> & string, Key>[] {
  const left = new Set<string>(without);
  const keys = Object.keys(entity.meta.properties) as (keyof InferEntity<Entity> & string)[];
  return keys.filter((key): key is Exclude<typeof key, Key> => !left.has(key));
}

/** Null for each property of an entity that may be null. */
export function nullsOf<Entity extends EntitySchema>({ meta }: Entity): NullsOf<InferEntity<Entity>> {
  const properties = Object.entries<{ nullable?: boolean }>(meta.properties);
  const nullable = properties.flatMap(([name, property]) => (property.nullable ? [[name, null]] : []));
  return Object.fromEntries(nullable) as NullsOf<InferEntity<Entity>>;
}

/** The object in a `json` column of a statement's row. The columns hold nothing else. */
export function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null) throw new TypeError('Not an object from the database');
  return value as JsonObject;
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

type NullsOf<Item> = { [Name in keyof Item as null extends Item[Name] ? Name : never]: null };

type RowReader<Item> = { columns: string; map: (row: Row) => Item };

export type { JsonObject } from '../../domain/json/json.ts';
