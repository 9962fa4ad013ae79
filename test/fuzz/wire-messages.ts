import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { hostileIds, pick } from './hostile-values.ts';

/**
 * A message of a type as it comes over the wire, made from its description: any of its fields, with values that
 * fit their types and seldom more. `known` gives values that exist, by the field's name.
 */
export function wireMessage(
  type: DescMessage,
  random: () => number,
  known: KnownValues,
  depth = 0,
): Uint8Array {
  const writer = new BinaryWriter();
  const oneofs = new Map(type.oneofs.map((oneof) => [oneof.name, pick(oneof.fields, random)]));
  for (const field of type.fields) {
    if (field.oneof !== undefined && oneofs.get(field.oneof.name) !== field && random() < 0.95) continue;
    if (depth > 0 && random() < 0.4 + depth / 10) continue;
    const count = field.fieldKind === 'list' || field.fieldKind === 'map' ? Math.floor(random() * 4) : 1;
    for (let index = 0; index < count; index += 1) writeField(writer, field, { random, known, depth });
  }
  return writer.finish();
}

function writeField(writer: BinaryWriter, field: DescField, from: From): void {
  const { random, known, depth } = from;
  if (field.fieldKind === 'map') {
    const entry = new BinaryWriter();
    entry.tag(1, WireType.LengthDelimited).string(pick(texts, random));
    if (field.mapKind === 'message') {
      entry.tag(2, WireType.LengthDelimited).bytes(wireMessage(field.message, random, known, depth + 1));
    }
    writer.tag(field.number, WireType.LengthDelimited).bytes(entry.finish());
    return;
  }
  if (field.message !== undefined) {
    writer.tag(field.number, WireType.LengthDelimited);
    writer.bytes(depth > MOST_DEEP ? new Uint8Array() : wireMessage(field.message, random, known, depth + 1));
    return;
  }
  if (field.enum !== undefined) {
    const numbers = field.enum.values.map(({ number }) => number);
    writer.tag(field.number, WireType.Varint).int32(random() < 0.9 ? pick(numbers, random) : 99);
    return;
  }
  writeScalar(writer, field, from);
}

function writeScalar(
  writer: BinaryWriter,
  { number, scalar, name }: DescField,
  { random, known }: From,
): void {
  if (scalar === ScalarType.STRING) {
    const values = known[name];
    const text = values !== undefined && random() < 0.8 ? pick(values, random) : pick(texts, random);
    writer.tag(number, WireType.LengthDelimited);
    if (random() < 0.01) writer.bytes(Uint8Array.of(0xff, 0xc0));
    else writer.string(text);
  } else if (scalar === ScalarType.BYTES) {
    writer.tag(number, WireType.LengthDelimited).bytes(new Uint8Array(pick([0, 1, 1000], random)));
  } else if (scalar === ScalarType.DOUBLE) {
    writer.tag(number, WireType.Bit64).double(pick(numbers, random));
  } else if (scalar === ScalarType.INT64) {
    writer.tag(number, WireType.Varint).int64(pick(longs, random));
  } else {
    writer.tag(number, WireType.Varint).int32(pick(integers, random));
  }
}

const MOST_DEEP = 8;

const texts = [
  ...hostileIds,
  '',
  'a',
  'email',
  'Ünïcødé 👍',
  'ada@example.com',
  'https://example.com/hook',
  'a\0b',
  '<b>&"',
  '2026-11-22T00:00:00Z',
  'x'.repeat(3_000),
];
const numbers = [0, -0, 1, 1.5, -1, 1e308, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const integers = [0, 1, 2, 5, 20, 100, -1, 1_000_000_000, 2_147_483_647, -2_147_483_648];
const longs = [
  '0',
  '1',
  '60',
  '86400',
  '1795226400',
  '-62135596801',
  '253402300800',
  '9223372036854775807',
  '-9223372036854775808',
];

export type KnownValues = Record<string, readonly string[] | undefined>;
type From = { random: () => number; known: KnownValues; depth: number };
