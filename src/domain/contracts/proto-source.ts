import { type AnswersFile, jsonNameOf, type Part } from './answers-file.ts';

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
  const option = jsonNameOf(name) === jsonName ? '' : ` [json_name = "${jsonName}"]`;
  return `${type} ${name} = ${number}${option};\n`;
}

function commented(comment: readonly string[], indent = ''): string {
  return comment.map((line) => `${indent}// ${line}\n`).join('');
}
