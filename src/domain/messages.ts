import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  isMessage,
  type JsonValue,
  type MessageInitShape,
} from '@bufbuild/protobuf';
import {
  DurationSchema,
  StructSchema,
  TimestampSchema,
  timestampFromDate,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { memoize } from './memoize.ts';

/**
 * The message of checked JSON as REST has it: a property is the field of its own name, an instant such as `expires_at`
 * that of `expire_time`, one of several the case of its group. Durations are whole seconds, an enum is the name of its
 * value in lower case, a message is JSON of the same kind, and one of a map alone is that map. Null is
 * empty. What is a message already stays as it is. Throws for a name that is no field.
 */
export function messageFrom<M extends DescMessage>(schema: M, json: object): MessageInitShape<M> {
  const message: Record<string, unknown> = {};
  for (const [name, given] of Object.entries(json)) {
    if (given === undefined) continue;
    const field = fieldNamed(schema, name);
    const { localName, oneof } = field;
    const convert = converterOf(field);
    const value = Array.isArray(given) ? given.map(convert) : convert(given);
    if (oneof === undefined) message[localName] = value;
    else message[oneof.localName] = { case: localName, value };
  }
  return message as MessageInitShape<M>;
}

/** The field of a message that a property of REST stands for. Throws if there is none. */
export function fieldNamed(schema: DescMessage, name: string): DescField {
  const field = fieldsByName(schema).get(name) ?? schema.fields.find((each) => isTimeOf(each.name, name));
  if (field === undefined) throw new TypeError(`${schema.typeName} has no field for ${name}`);
  return field;
}

const fieldsByName = memoize(({ fields }: DescMessage) => new Map(fields.map((each) => [each.name, each])));

/** `last_use_time` is the time of `last_used_at`. */
function isTimeOf(field: string, name: string): boolean {
  return name.endsWith('_at') && field.endsWith('_time') && name.startsWith(field.slice(0, -'_time'.length));
}

const converterOf = memoize(({ enum: choices, message }: DescField): ((value: unknown) => unknown) => {
  if (choices !== undefined) {
    const numbers = numbersOf(choices);
    return (name) => (typeof name === 'string' ? numbers.get(name) : name);
  }
  if (message === undefined) return (value) => value ?? '';
  switch (message.typeName) {
    case DurationSchema.typeName:
      return (seconds) => ({ seconds: BigInt(Number(seconds)), nanos: 0 });
    case ValueSchema.typeName:
      return (value) => fromJson(ValueSchema, value as JsonValue);
    case StructSchema.typeName:
      return (json) => json ?? {};
  }
  const [first, ...others] = message.fields;
  if (first?.fieldKind === 'map' && others.length === 0) return (map) => ({ [first.localName]: map ?? {} });
  return (json) => (isMessage(json) ? json : messageFrom(message, Object(json ?? {})));
});

/** The values of an enum by their names in lower case. */
export const numbersOf = memoize(
  ({ values }: DescEnum): ReadonlyMap<unknown, number> =>
    new Map(values.map(({ localName, number }) => [localName.toLowerCase(), number])),
);

/**
 * The message of a row of the database, or of an event's data: a field has what the property of its name holds,
 * `createTime` what `createdAt` does, and an enum the value of that name. Null is unset. `own` are the fields that no
 * property has as it is shown, among them all that are messages of their own: a row may hold more than they show.
 */
export function rowToMessage<M extends DescMessage>(
  schema: M,
  row: object,
  own: MessageInitShape<M>,
): MessageInitShape<M> {
  const message: Record<string, unknown> = {};
  for (const { name, read } of columnsOf(schema)) message[name] = read(row as Properties);
  return Object.assign(message, own);
}

const columnsOf = memoize(({ fields }: DescMessage) =>
  fields.map((field) => ({ name: field.localName, read: columnOf(field) })),
);

function columnOf({ localName, enum: choices, message }: DescField): (row: Properties) => unknown {
  if (message?.typeName === TimestampSchema.typeName) {
    const verb = localName.slice(0, -'Time'.length);
    const names = [`${verb}dAt`, `${verb}edAt`, `${verb}sAt`, `${verb}At`, localName];
    return (row) => {
      const time = row[names.find((name) => row[name] instanceof Date) ?? ''];
      return time instanceof Date ? timestampFromDate(time) : undefined;
    };
  }
  if (message !== undefined && message.typeName !== StructSchema.typeName) return () => undefined;
  if (choices === undefined) return (row) => row[localName] ?? undefined;
  const numbers = numbersOf(choices);
  return (row) => numbers.get(row[localName]);
}

type Properties = Readonly<Record<string, unknown>>;
