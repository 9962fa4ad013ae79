import { create } from '@bufbuild/protobuf';
import { NullValue, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { Json } from '../json/json.ts';

/** Returns the JSON of a message's value. An object becomes an empty one: definitions have none there. */
export function jsonFromValue(value: Value | undefined): Json | undefined {
  switch (value?.kind.case) {
    case 'boolValue':
    case 'numberValue':
    case 'stringValue':
      return value.kind.value;
    case 'nullValue':
      return null;
    case 'listValue':
      return value.kind.value.values.map((item) =>
        item.kind.case === 'listValue' ? [] : (jsonFromValue(item) ?? null),
      );
    case 'structValue':
      return {};
    case undefined:
      return undefined;
    default:
      return value?.kind satisfies undefined;
  }
}

/** The message value of a scalar, or of a list of scalars. */
export function valueFromJson(json: Json | undefined): Value | undefined {
  if (json === undefined) return undefined;
  if (Array.isArray(json)) {
    const values = json.flatMap((item) => valueFromJson(item) ?? []);
    return create(ValueSchema, { kind: { case: 'listValue', value: { values } } });
  }
  if (typeof json === 'boolean') return create(ValueSchema, { kind: { case: 'boolValue', value: json } });
  if (typeof json === 'number') return create(ValueSchema, { kind: { case: 'numberValue', value: json } });
  if (typeof json === 'string') return create(ValueSchema, { kind: { case: 'stringValue', value: json } });
  return create(ValueSchema, { kind: { case: 'nullValue', value: NullValue.NULL_VALUE } });
}

/**
 * Returns the word for an enum's number: undefined for 0, which is "unset", and the number as text if it is
 * unknown, so that a check can refuse it.
 */
export function keyOf(words: Record<string, number>, number: number): string | undefined {
  if (number === 0) return undefined;
  return Object.keys(words).find((word) => words[word] === number) ?? String(number);
}

/** Returns the object without its undefined properties, which JSON does not have. */
export function present(properties: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined));
}

/** Messages don't distinguish an empty list from an absent one. */
export function listed<Item>(items: Item[]): Item[] | undefined {
  return items.length > 0 ? items : undefined;
}
