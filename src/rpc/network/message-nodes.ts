import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { ListValueSchema, StructSchema, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { Excess, NodeLimits } from '../../domain/json/json-problems.ts';
import { MAX_WIRE_FIELDS } from '../../domain/limits/limits.ts';

/**
 * Whether a binary message holds more than `maxNodes` messages, elements of lists and entries of maps, or else nests
 * more than `maxDepth` deep, as its JSON does, so that it can be refused before objects are made of it. What holds
 * JSON values counts apart, so that `maxNodes` JSON values of any kind fit. Bytes that are no message count up to
 * where they break: the parser refuses them.
 */
export function messageExcess(
  bytes: Uint8Array,
  schema: DescMessage,
  limits: NodeLimits,
): Excess | undefined {
  const progress = {
    reader: new BinaryReader(bytes),
    limits,
    fields: 0,
    nodes: 0,
    containers: 0,
    deepest: 1,
  };
  try {
    walk(progress, partsOf(schema), bytes.length, 1);
  } catch {
    // Broken bytes, which the parser names.
  }
  if (isOver(progress)) return 'nodes';
  return progress.deepest > limits.maxDepth ? 'depth' : undefined;
}

/**
 * Counts what is between the reader's position and `end`. One reader for all levels: a new one for each costs more
 * than the counting.
 */
function walk(progress: Progress, parts: Parts, end: number, depth: number): void {
  const { reader, limits } = progress;
  let groups = 0;
  while (reader.pos < end && !isOver(progress)) {
    const [number, wireType] = reader.tag();
    progress.fields += 1;
    // Groups, which no message of ours has, are gone through here: the reader would recurse into them.
    if (wireType === WireType.StartGroup) groups += 1;
    if (wireType === WireType.EndGroup) groups -= 1;
    if (wireType === WireType.StartGroup || wireType === WireType.EndGroup) continue;
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    const endOfContent = reader.uint32() + reader.pos;
    const part = groups === 0 ? parts.get(number) : undefined;
    if (part !== undefined) {
      progress[part.counts] += 1;
      const inside = depth + part.levels;
      if (inside > progress.deepest) progress.deepest = inside;
      if (part.inside !== undefined && inside <= limits.maxDepth)
        walk(progress, part.inside(), Math.min(endOfContent, end), inside);
    }
    // Not by `skip`, which makes an array of what it skips.
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
  // A JSON value is as deep as the object or the list that it is.
  const levels = message === undefined || message.typeName === ValueSchema.typeName ? 0 : 1;
  if (field.fieldKind === 'map') {
    const entry: Parts = new Map([[MAP_VALUE, { counts: 'nodes', inside, levels }]]);
    return [[field.number, { counts: 'containers', inside: () => entry, levels: 0 }]];
  }
  if (field.fieldKind !== 'message' && field.fieldKind !== 'list') return undefined;
  const isContainer = message !== undefined && containers.has(message.typeName);
  return [[field.number, { counts: isContainer ? 'containers' : 'nodes', inside, levels }]];
}

/** What a `google.protobuf.Value` holds that is an object or a list. */
const containers: ReadonlySet<string> = new Set([StructSchema.typeName, ListValueSchema.typeName]);

function isOver({ nodes, containers, fields, limits: { maxNodes } }: Progress): boolean {
  return nodes > maxNodes || containers > CONTAINERS_PER_VALUE * maxNodes || fields > MAX_WIRE_FIELDS;
}

/** The entry of the object that a value is in, and the object or list that it is. */
const CONTAINERS_PER_VALUE = 2;

const partsBySchema = new WeakMap<DescMessage, Parts>();

/** The number of the value in a map's entry, by protobuf's specification. */
const MAP_VALUE = 2;

/** A field whose contents count, or may hold what counts. `levels`: by how much its contents are deeper as JSON. */
type Part = { counts: 'nodes' | 'containers'; inside: (() => Parts) | undefined; levels: 0 | 1 };
type Parts = ReadonlyMap<number, Part>;
type Progress = {
  readonly reader: BinaryReader;
  readonly limits: NodeLimits;
  fields: number;
  nodes: number;
  containers: number;
  deepest: number;
};
