import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProtoSchema,
  type FieldDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  file_google_protobuf_struct as struct,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';
import { type AnswerField, type AnswersFile, type Part, protocJsonName } from './answers-file.ts';

/** The same as `protoSource`, as protoc reads it: a `FileDescriptorSet` with what the file imports, and comments. */
export function descriptorSet(file: AnswersFile): Uint8Array {
  const described = create(FileDescriptorProtoSchema, {
    name: file.path,
    package: file.package,
    syntax: 'proto3',
    dependency: file.usesStruct ? [struct.proto.name] : [],
    options: { goPackage: file.goPackage, javaMultipleFiles: true },
    messageType: [messageOf(file)],
    sourceCodeInfo: { location: [commentAt([MESSAGE, 0], file.comment), ...fieldComments(file)] },
  });
  const imported = file.usesStruct ? [struct.proto] : [];
  return toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: [...imported, described] }),
  );
}

function messageOf(file: AnswersFile): Message {
  const { fields, reserved } = file;
  const scope = `.${file.package}.${file.message}`;
  const singular = fields.filter(({ type }) => !/^(repeated|map)\b/.test(type));
  return {
    name: file.message,
    field: fields.map((field) => ({
      ...fieldOf(field, scope),
      name: field.name,
      number: field.number,
      jsonName: field.id,
      ...optional(singular.indexOf(field)),
    })),
    nestedType: [
      ...fields.flatMap((field) => (field.type.startsWith('map') ? entryOf(field) : [])),
      ...file.parts.map(([name, parts]) => ({ name, ...partsOf(parts) })),
    ],
    oneofDecl: singular.map(({ name }) => ({ name: `_${name}` })),
    reservedRange: reserved.map(([start, last]) => ({ start, end: last + 1 })),
  };
}

/** A field that may be absent is alone in a oneof of its own. */
function optional(oneofIndex: number): Field {
  return oneofIndex < 0 ? {} : { oneofIndex, proto3Optional: true };
}

function fieldOf({ type, name }: AnswerField, scope: string): Field {
  const [last = ''] = type.split(' ').slice(-1);
  if (type.startsWith('map')) {
    return { type: Type.MESSAGE, typeName: `${scope}.${entryName(name)}`, label: Label.REPEATED };
  }
  return { ...typeOf(last, scope), label: type.startsWith('repeated') ? Label.REPEATED : Label.OPTIONAL };
}

function typeOf(name: string, scope: string): Field {
  const scalar = scalars.get(name);
  if (scalar !== undefined) return { type: scalar };
  return { type: Type.MESSAGE, typeName: name.startsWith('google.') ? `.${name}` : `${scope}.${name}` };
}

const scalars: ReadonlyMap<string, Type> = new Map([
  ['string', Type.STRING],
  ['double', Type.DOUBLE],
  ['int32', Type.INT32],
  ['bool', Type.BOOL],
]);

/** A map is a list of messages with a key and a value. */
function entryOf({ name, type }: AnswerField): Message {
  const value = /^map<string, (.+)>$/.exec(type)?.[1] ?? '';
  const label = Label.OPTIONAL;
  return {
    name: entryName(name),
    field: [
      { name: 'key', number: 1, label, type: Type.STRING, jsonName: 'key' },
      { name: 'value', number: 2, label, ...typeOf(value, ''), jsonName: 'value' },
    ],
    options: { mapEntry: true },
  };
}

function entryName(name: string): string {
  return `${protocJsonName(`_${name}`)}Entry`;
}

function partsOf(parts: Part[]): Message {
  return {
    field: parts.map(([name, type], index) => ({
      name,
      number: index + 1,
      label: Label.OPTIONAL,
      ...typeOf(type, ''),
      jsonName: name,
      ...optional(index),
    })),
    oneofDecl: parts.map(([name]) => ({ name: `_${name}` })),
  };
}

function fieldComments({ fields }: AnswersFile) {
  return fields.map(({ comment }, index) => commentAt([MESSAGE, 0, FIELD, index], comment));
}

/** By the numbers of fields in descriptors that lead to what is commented. There is no place in a text. */
function commentAt(path: number[], comment: readonly string[]) {
  return { path, span: [0, 0, 0], leadingComments: comment.map((line) => ` ${line}\n`).join('') };
}

/** `FileDescriptorProto.message_type` and `DescriptorProto.field`. */
const [MESSAGE, FIELD] = [4, 2];

type Message = MessageInitShape<typeof DescriptorProtoSchema>;
type Field = Partial<Omit<FieldDescriptorProto, '$typeName' | '$unknown' | 'options'>>;

/** The proto file of a version, for protoc from 3.15 on and for buf. */
export function protoSource(file: AnswersFile): string {
  const { header, comment, message, reserved, fields, parts, usesStruct } = file;
  const ranges = reserved.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`));
  const blocks = [
    ...(ranges.length === 0 ? [] : [`  // Of fields that are gone.\n  reserved ${ranges.join(', ')};\n`]),
    ...fields.map(({ id, name, number, type, comment }) => {
      const isList = /^(repeated|map)\b/.test(type);
      const typeName = type.replace('google.', '.google.');
      return `${commented(comment, '  ')}  ${fieldSource(isList ? typeName : `optional ${typeName}`, name, number, id)}`;
    }),
    ...parts.map(([name, each]) => `  message ${name} {\n${each.map(partSource).join('')}  }\n`),
  ];
  return [
    `${commented(header)}syntax = "proto3";\n`,
    `package ${file.package};\n`,
    ...(usesStruct ? ['import "google/protobuf/struct.proto";\n'] : []),
    `option go_package = "${file.goPackage}";\noption java_multiple_files = true;\n`,
    `${commented(comment)}message ${message} {\n${blocks.join('\n')}}\n`,
  ].join('\n');
}

function partSource([name, type]: Part, index: number): string {
  return `    ${fieldSource(`optional ${type}`, name, index + 1, name)}`;
}

/** protoc makes camel case of a name where JSON is not said to have another one. */
function fieldSource(type: string, name: string, number: number, jsonName: string): string {
  const option = protocJsonName(name) === jsonName ? '' : ` [json_name = "${jsonName}"]`;
  return `${type} ${name} = ${number}${option};\n`;
}

function commented(comment: readonly string[], indent = ''): string {
  return comment.map((line) => `${indent}// ${line}\n`).join('');
}
