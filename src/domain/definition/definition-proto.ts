import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  isFieldSet,
  type Message,
} from '@bufbuild/protobuf';
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  TimestampSchema,
  timestampDate,
  timestampFromMs,
  type Value,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import * as pb from '../../../gen/headlessforms/v1/definition_pb.js';
import type { Field } from '../fields/field.ts';
import type { Json } from '../json/json.ts';
import { MAX_DEPTH } from '../json/json-problems.ts';
import { memoize } from '../memoize.ts';
import type { FormDefinition } from './definition.ts';
import { jsonNameOf, jsonNamesOfChoices, keyOf, wordOf } from './definition-path.ts';
import type { PublicDefinition } from './public-definition.ts';

/**
 * Returns the JSON that a typed definition stands for, as `checkDefinition` reads it. Unset fields are
 * absent. Nothing is checked: values that have no meaning become JSON that the check refuses.
 *
 * Names come from the messages themselves, but for the exceptions of `definition-path.ts`.
 */
export function definitionFromMessage(message: pb.FormDefinition): unknown {
  return jsonOf(pb.FormDefinitionSchema, message);
}

/** The typed message of a checked definition; `definitionFromMessage` and the check give it back unchanged. */
export function definitionToMessage(definition: FormDefinition | PublicDefinition): pb.FormDefinition {
  const { fields, settings, ...rest } = definition;
  const message = definitionMessageOf(
    settings === undefined ? rest : { ...rest, settings: Object.assign({ publicPage: true }, settings) },
  );
  message.fields = fields.map(fieldToMessage);
  return message;
}

/** The typed message of a definition as people send it, which a check has found nothing wrong with. */
export function definitionMessageOf(definition: object): pb.FormDefinition {
  return create(pb.FormDefinitionSchema, initOf(pb.FormDefinitionSchema, { ...definition }));
}

/** The typed message of a checked field. It says always who answers, which what was stored first does not. */
export const fieldToMessage = memoize((field: Field) =>
  fieldMessageOf(Object.assign({ answeredBy: 'anyone' }, field)),
);

function fieldMessageOf(field: object): pb.FormField {
  return create(pb.FormFieldSchema, initOf(pb.FormFieldSchema, { ...field }));
}

/** The typed message of a definition's theme. */
export const themeToMessage = memoize(
  ({ settings }: FormDefinition): pb.Theme => create(pb.ThemeSchema, initOf(pb.ThemeSchema, settings.theme)),
);

/** The JSON of a message of a definition or a context. What nests deeper than JSON may is cut off. */
export function jsonOf(schema: DescMessage, message: object, depth = 1): unknown {
  const json: Properties = {};
  if (depth > MAX_DEPTH) return json;
  for (const { field, property, name, tag, isAlwaysGiven, codec } of mappingsOf(schema)) {
    if (!isAlwaysGiven && !isFieldSet(message as Message, field)) continue;
    const held = (message as Properties)[property];
    const inner = codec.json(field.oneof === undefined ? held : (held as Choice).value, depth + 1);
    if (inner === undefined) continue;
    if (tag !== undefined) json[tag] = field.localName;
    if (name !== '') json[name] = inner;
    else if (Array.isArray(inner)) return inner;
    else Object.assign(json, inner);
  }
  return json;
}

/** What `create` makes the message of checked JSON from. */
function initOf(schema: DescMessage, json: Properties): Properties {
  const init: Properties = {};
  for (const { field, property, name, tag, codec } of mappingsOf(schema)) {
    if (tag !== undefined && json[tag] !== field.localName) continue;
    const given = json[name];
    if (name !== '' && given === undefined) continue;
    const source = name === '' ? json : given;
    const value = codec.init === undefined ? source : codec.init(source);
    // An alternative without a name matches any JSON. It comes first, so that one whose name is there takes its place.
    init[property] = field.oneof === undefined ? value : { case: field.localName, value };
  }
  return init;
}

const mappingsOf = memoize((schema: DescMessage) =>
  schema.fields.map((field) => ({
    field,
    property: (field.oneof ?? field).localName,
    name: jsonNameOf(field),
    tag: field.oneof && jsonNamesOfChoices.get(keyOf(field.oneof)),
    isAlwaysGiven: alwaysGiven[schema.name]?.includes(field.name) === true,
    codec: codecOf(field),
  })),
);

function codecOf(field: DescField): Codec {
  const { json, init } = itemCodecOf(field);
  if (field.fieldKind === 'list') {
    return codec(
      (items: unknown[], depth) => items.map((item) => json(item, depth)),
      init && ((items: unknown[]) => items.map(init)),
    );
  }
  if (field.fieldKind === 'map') {
    return codec(
      (map: Properties, depth) => mapValues(map, (value) => json(value, depth)),
      init && ((map: Properties) => mapValues(map, init)),
    );
  }
  return { json, init };
}

function itemCodecOf({ enum: choices, message }: DescField): Codec {
  if (choices !== undefined) return enumCodecOf(choices);
  if (message === undefined) return codec((value) => value);
  const own = codecs.get(message);
  if (own !== undefined) return own;
  return codec(
    (value: Properties, depth) => jsonOf(message, value, depth),
    isPlain(message) ? undefined : (value: Properties) => initOf(message, value),
  );
}

/** Whether a message can be made from its JSON as it is. */
function isPlain({ fields }: DescMessage): boolean {
  return fields.every(
    (field) =>
      jsonNameOf(field) === field.localName &&
      field.oneof === undefined &&
      itemCodecOf(field).init === undefined,
  );
}

/** An unknown number becomes a text, so that the check can refuse it. */
function enumCodecOf({ values }: DescEnum): Codec {
  const words = new Map(values.map((value) => [value.number, wordOf(value)]));
  const numbers = new Map(values.map((value) => [wordOf(value), value.number]));
  return codec(
    (number: number) => words.get(number) ?? String(number),
    (word: string) => numbers.get(word),
  );
}

function mapValues(values: Properties, change: (value: unknown) => unknown): Properties {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}

function codec<Held, Given>(
  json: (value: Held, depth: number) => unknown,
  init?: (json: Given) => unknown,
): Codec {
  return { json, init } as Codec;
}

/** The messages that are no objects of the JSON; and fields, which are made once. */
const codecs = new Map<DescMessage, Codec>([
  [
    pb.FormFieldSchema,
    codec(
      memoize((field: pb.FormField) => jsonOf(pb.FormFieldSchema, field, 2)),
      fieldMessageOf,
    ),
  ],
  [ValueSchema, codec(jsonOfValue, (json: Json) => fromJson(ValueSchema, json))],
  [
    TimestampSchema,
    codec(
      (time: Timestamp) => isoText(timestampDate(time)),
      (text: string) => timestampFromMs(Date.parse(text)),
    ),
  ],
  [
    DurationSchema,
    codec(
      ({ seconds, nanos }: Duration) => Number(seconds) + nanos / NANOS,
      (seconds: number) => {
        const whole = Math.floor(seconds);
        return { seconds: BigInt(whole), nanos: Math.round((seconds - whole) * NANOS) };
      },
    ),
  ],
]);

/** An object becomes an empty one, as a list in a list does: definitions have none there. */
function jsonOfValue({ kind }: Value): Json | undefined {
  switch (kind.case) {
    case 'nullValue':
      return null;
    case 'structValue':
      return {};
    case 'listValue':
      return kind.value.values.map((item) =>
        item.kind.case === 'listValue' ? [] : (jsonOfValue(item) ?? null),
      );
    case 'boolValue':
    case 'numberValue':
    case 'stringValue':
    case undefined:
      return kind.value;
  }
}

/** A timestamp outside of what `Date` can hold becomes a text that the check refuses. */
function isoText(date: Date): string {
  return Number.isNaN(date.getTime()) ? 'beyond time' : date.toISOString();
}

const NANOS = 1_000_000_000;

/** The fields that the JSON has though they are empty: what is required, and what has a default. */
const alwaysGiven: Record<string, string[]> = {
  FormDefinition: ['name', 'slug', 'fields'],
  FormField: ['id', 'required', 'hidden'],
  FieldOption: ['label', 'value'],
  ConditionList: ['conditions'],
  Comparison: ['field'],
  Autoresponse: ['to', 'subject', 'message'],
  SessionContext: ['items'],
  ContextItem: ['label', 'value'],
  Settings: ['allow_partial', 'allowed_origins', 'embed_origins', 'review'],
};

/** How what a field holds becomes JSON, and what `create` takes for it. */
type Codec = {
  json: (value: unknown, depth: number) => unknown;
  init: ((json: unknown) => unknown) | undefined;
};

type Choice = { value?: unknown };

type Properties = Record<string, unknown>;
