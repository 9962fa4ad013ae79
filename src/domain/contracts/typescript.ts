import { mustBeAnswered } from '../answers/json-schema.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import type { AnswerType } from '../fields/field-type.ts';
import { answersFile, type VersionToDescribe } from './answers-file.ts';
import { answerTypeOf } from './contract.ts';

/**
 * The type of the JSON of a version's answers, for TypeScript. What may be left out of a submission is optional, also
 * if the service always fills it in.
 */
export function typeScriptSource(version: VersionToDescribe): string {
  const { header, comment, message, fields } = answersFile(version);
  const comments = new Map(fields.map((field) => [field.id, field.comment]));
  const properties = version.definition.fields.filter(takesAnswer).map((field) => {
    const mark = mustBeAnswered(field) ? '' : '?';
    return `${documented(comments.get(field.id) ?? [], '  ')}  ${propertyName(field.id)}${mark}: ${typeOf(field)};\n`;
  });
  const needed = new Set(version.definition.fields.map(answerTypeOf));
  const parts = Object.entries(partTypes).filter(([, { of }]) => of.some((type) => needed.has(type)));
  return [
    header.map((line) => `// ${line}\n`).join(''),
    `${documented(comment)}export type ${message} = {\n${properties.join('')}};\n`,
    ...parts.map(([name, { source }]) => `export type ${name} = ${source};\n`),
  ].join('\n');
}

function typeOf(field: Field): string {
  const type = answerTypeOf(field);
  switch (type) {
    case 'string':
      return choiceOf(field);
    case 'double':
    case 'int32':
      return 'number';
    case 'bool':
      return 'boolean';
    case 'repeated string':
      return `(${choiceOf(field)})[]`;
    case 'repeated File':
      return 'File[]';
    case 'File':
    case 'Address':
    case 'Signature':
      return type;
    case 'map<string, string>':
      return rowsOf(field, choiceOf(field));
    case 'map<string, google.protobuf.ListValue>':
      return rowsOf(field, `(${choiceOf(field)})[]`);
    case 'google.protobuf.Value':
      return 'string | number | boolean';
    case undefined:
      return 'never';
    default:
      return type satisfies never;
  }
}

function choiceOf({ options, allowOther }: Field): string {
  if (options === undefined) return 'string';
  const union = unionOf(options);
  // Editors go on suggesting the values beside any text.
  return allowOther === true ? `${union} | (string & {})` : union;
}

function rowsOf({ rows = [] }: Field, cell: string): string {
  return `{ [row in ${unionOf(rows)}]?: ${cell} }`;
}

function unionOf(choices: readonly { value: string }[]): string {
  return choices.map(({ value }) => JSON.stringify(value)).join(' | ');
}

function propertyName(id: string): string {
  return /^\w+$/.test(id) ? id : `'${id}'`;
}

function documented(comment: readonly string[], indent = ''): string {
  if (comment.length === 0) return '';
  const lines = comment.map((line) => `${indent} * ${line.replaceAll('*/', '*\\/')}\n`);
  return `${indent}/**\n${lines.join('')}${indent} */\n`;
}

const fileSource = `{
  upload_id: string;
  filename?: string;
  content_type?: string;
  size?: number;
  sha256?: string;
  /** Where it is read, with an API key. */
  url?: string;
}`;

/** The types of answers with parts. Of a file, only `upload_id` is sent. */
const partTypes: Record<string, { of: (AnswerType | undefined)[]; source: string }> = {
  File: { of: ['File', 'repeated File', 'Signature'], source: fileSource },
  Address: {
    of: ['Address'],
    source: `{
  line1: string;
  line2?: string;
  city: string;
  region?: string;
  postal_code?: string;
  /** ISO 3166-1 code. */
  country: string;
}`,
  },
  Signature: { of: ['Signature'], source: 'File | { text: string }' },
};
