import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { ListValueSchema, StructSchema } from '@bufbuild/protobuf/wkt';

/**
 * Whether a binary message holds more than `limit` messages, elements of lists and entries of maps, so that it
 * can be refused before objects are made of it. What holds JSON values counts apart, so that `limit` JSON
 * values of any kind fit. Bytes that are no message count up to where they break: the parser refuses them.
 */
export function hasMoreMessages(bytes: Uint8Array, schema: DescMessage, limit: number): boolean {
  const progress = { reader: new BinaryReader(bytes), nodes: 0, containers: 0, limit };
  try {
    walk(progress, partsOf(schema), bytes.length, 1);
  } catch {
    // Broken bytes, which the parser names.
  }
  return isOver(progress);
}

/** Counts what is between the reader's position and `end`. One reader for all levels: a new one is dear. */
function walk(progress: Progress, parts: Parts, end: number, depth: number): void {
  const { reader } = progress;
  while (reader.pos < end && !isOver(progress)) {
    const [number, wireType] = reader.tag();
    const part = parts.get(number);
    if (part === undefined || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    progress[part.counts] += 1;
    const endOfContent = reader.uint32() + reader.pos;
    if (part.inside !== undefined && depth < MAX_DEPTH) {
      walk(progress, part.inside(), Math.min(endOfContent, end), depth + 1);
    }
    reader.pos = endOfContent;
  }
}

/** The fields of a message whose contents become objects, by number. */
function partsOf(schema: DescMessage): Parts {
  const known = partsBySchema.get(schema);
  if (known !== undefined) return known;
  const parts = new Map(schema.fields.flatMap((field) => partOf(field) ?? []));
  partsBySchema.set(schema, parts);
  return parts;
}

function partOf(field: DescField): [[number, Part]] | undefined {
  const { message } = field;
  const inside = message && (() => partsOf(message));
  if (field.fieldKind === 'map') {
    const entry: Parts = new Map([[MAP_VALUE, { counts: 'nodes', inside }]]);
    return [[field.number, { counts: 'containers', inside: () => entry }]];
  }
  if (field.fieldKind !== 'message' && field.fieldKind !== 'list') return undefined;
  const isContainer = message !== undefined && containers.has(message.typeName);
  return [[field.number, { counts: isContainer ? 'containers' : 'nodes', inside }]];
}

/** What a `google.protobuf.Value` holds that is an object or a list. */
const containers: ReadonlySet<string> = new Set([StructSchema.typeName, ListValueSchema.typeName]);

function isOver({ nodes, containers, limit }: Progress): boolean {
  return nodes > limit || containers > CONTAINERS_PER_VALUE * limit;
}

/** The entry of the object that a value is in, and the object or list that it is. */
const CONTAINERS_PER_VALUE = 2;

const partsBySchema = new WeakMap<DescMessage, Parts>();

/** The number of the value in a map's entry, by protobuf's specification. */
const MAP_VALUE = 2;

/** As deep as Protobuf-ES parses. */
const MAX_DEPTH = 100;

/** A field whose contents count, or may hold what counts. */
type Part = { counts: 'nodes' | 'containers'; inside: (() => Parts) | undefined };
type Parts = ReadonlyMap<number, Part>;
type Progress = { reader: BinaryReader; nodes: number; containers: number; readonly limit: number };
