import type { DescField, DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { StructSchema, TimestampSchema, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { memoize } from '../domain/memoize.ts';

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
  for (const { name, read } of readersOf(schema)) message[name] = read(row as Properties);
  return Object.assign(message, own);
}

const readersOf = memoize(({ fields }: DescMessage) =>
  fields.map((field) => ({ name: field.localName, read: readerOf(field) })),
);

function readerOf({ localName, enum: choices, message }: DescField): Read {
  if (message?.typeName === TimestampSchema.typeName) {
    const verb = localName.slice(0, -'Time'.length);
    const names = [`${verb}dAt`, `${verb}edAt`, `${verb}sAt`, `${verb}At`, localName];
    return (row) => {
      const time = row[names.find((name) => row[name] instanceof Date) ?? ''];
      return time instanceof Date ? timestampFromDate(time) : undefined;
    };
  }
  if (message !== undefined && message.typeName !== StructSchema.typeName) return () => undefined;
  if (choices !== undefined) {
    const numbers = new Map<unknown, number>(
      choices.values.map((value) => [value.localName.toLowerCase(), value.number]),
    );
    return (row) => numbers.get(row[localName]);
  }
  return (row) => row[localName] ?? undefined;
}

type Read = (row: Properties) => unknown;

type Properties = Readonly<Record<string, unknown>>;
