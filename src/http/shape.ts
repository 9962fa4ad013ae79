import type { DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import {
  type Duration,
  DurationSchema,
  StructSchema,
  type Timestamp,
  TimestampSchema,
  timestampDate,
  type Value,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import type { JsonObject } from '../domain/json/json.ts';
import { fieldNamed, numbersOf } from '../domain/messages.ts';

/**
 * How replies have a message of the RPCs: the schema of the reply, and the function that makes it of a message.
 * `component` names it in the API description; what has none is described where it stands.
 *
 * A property takes the field of its own name, `form_id` that of `formId`, and an instant such as `created_at` that of
 * `createTime`; `from` names another field, or makes the property. A literal takes none. Times are ISO 8601 in UTC,
 * durations whole seconds, a message is what its own shape or schema says, an enum is the name of its value, or for a
 * value that has none null if the schema allows that, else its first name. What is empty is null or undefined where
 * the schema allows that; JSON leaves out what is undefined.
 */
export function shape<M extends DescMessage, P extends Properties<MessageShape<M>>>(
  message: M,
  component: string,
  properties: P,
): Shape<MessageShape<M>, SchemaOf<P>> {
  const entries = Object.entries(properties).map(([name, given]) => {
    const { schema, source = name, of }: Part = given instanceof z.ZodType ? { schema: given } : given;
    const read = typeof source === 'function' ? source : readerOf(message, source, schema, of);
    return { name, schema, read: read as Read };
  });
  const schemas = Object.fromEntries(entries.map(({ name, schema }) => [name, schema]));
  // A reply is made faster as a copy that has every property than one property after the other.
  const blank = Object.fromEntries<unknown>(entries.map(({ name }) => [name, null]));
  return {
    schema: z.object(schemas).meta(component === '' ? {} : { id: component }) as SchemaOf<P>,
    of(part) {
      const values = present(part);
      const reply = { ...blank };
      for (const { name, read } of entries) reply[name] = read(values);
      return reply as z.input<SchemaOf<P>>;
    },
  };
}

/** A property that takes the field of another name, or what a function makes of the message. */
export function from<Message, S extends z.ZodType>(source: Source<Message, S>, schema: S): From<Message, S> {
  return { source, schema };
}

function readerOf(message: DescMessage, name: string, schema: z.ZodType, of?: Part['of']): Read {
  if (schema instanceof z.ZodLiteral) return () => schema.value;
  const field = fieldNamed(message, name);
  const { localName } = field;
  const inner = innerSchema(schema);
  const convert = (of as Convert | undefined) ?? converterOf(field, inner);
  const isOptional = [z.ZodNullable, z.ZodOptional, z.ZodExactOptional].some(
    (kind) => schema instanceof kind,
  );
  const first = inner instanceof z.ZodEnum ? inner.options[0] : undefined;
  const unset = schema instanceof z.ZodNullable ? null : isOptional ? undefined : first;
  return (values) => {
    const value = values[localName];
    if (isOptional && isEmpty(value)) return unset;
    return Array.isArray(value) ? value.map((each) => convert(each)) : (convert(value) ?? unset);
  };
}

/** The schema of what a property holds where it is there, or of each item of a list. */
function innerSchema(schema: z.ZodType): z.ZodType {
  return 'unwrap' in schema && typeof schema.unwrap === 'function' ? innerSchema(schema.unwrap()) : schema;
}

function converterOf({ enum: choices, message }: DescField, schema: z.ZodType): Convert {
  if (choices !== undefined && schema instanceof z.ZodEnum) {
    const numbers = numbersOf(choices);
    const names = new Map<unknown, unknown>(schema.options.map((name) => [numbers.get(name), name]));
    return (number) => names.get(number);
  }
  if (message === undefined) return (value) => value;
  const known = converters[message.typeName];
  if (known !== undefined) return known as Convert;
  return schema instanceof z.ZodObject ? (shape(message, '', schema.shape).of as Convert) : (value) => value;
}

const converters: Record<string, (value: never) => unknown> = {
  [TimestampSchema.typeName]: timeText,
  [DurationSchema.typeName]: ({ seconds }: Duration) => Number(seconds),
  [StructSchema.typeName]: (json: JsonObject | undefined) => json ?? {},
  [ValueSchema.typeName]: ({ kind }: Value) => kind.value,
};

function isEmpty(value: unknown): boolean {
  return (
    value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0)
  );
}

/** An instant in a reply. */
export const timeReply = z
  .string()
  .meta({ format: 'date-time', examples: ['2026-11-21T08:00:00.000Z'], description: 'ISO 8601, UTC.' });

/** A message's time as a reply has it. */
export function timeText(time: Timestamp | undefined): string {
  return time === undefined ? EPOCH : timestampDate(time).toISOString();
}

/** A message's text as a reply has it; null if it is not set. */
export function textOrNullReply(text: string): string | null {
  return text === '' ? null : text;
}

/** A part of a response that its service always sets. Throws if it did not. */
export function present<T>(part: T | undefined): T {
  if (part === undefined) throw new TypeError('A response lacks a part that is always set');
  return part;
}

const EPOCH = new Date(0).toISOString();

/** What a message becomes in replies. `of` throws without one, which services always set. */
export type Shape<Message, S extends z.ZodType> = {
  schema: S;
  of: (message: Omit<Message, '$typeName'> | undefined) => z.input<S>;
};

/** A property that a shape of its own makes may have that shape in place of a schema. */
export type Properties<Message> = Record<string, z.ZodType | Part<Message>>;

type Part<Message = never> = {
  schema: z.ZodType;
  source?: Source<Message, z.ZodType>;
  of?: (part: never) => unknown;
};

type From<Message, S extends z.ZodType> = { schema: S; source: Source<Message, S> };

type Source<Message, S extends z.ZodType> = string | ((message: Message) => z.input<S> | undefined);

export type SchemaOf<P> = z.ZodObject<{
  [Name in keyof P]: P[Name] extends z.ZodType
    ? P[Name]
    : P[Name] extends { schema: infer S extends z.ZodType }
      ? S
      : never;
}>;

type Read = (values: Readonly<Record<string, unknown>>) => unknown;

type Convert = (value: unknown) => unknown;
