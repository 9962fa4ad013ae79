import { mustBeAnswered } from '../answers/json-schema.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import type { AnswerType } from '../fields/field-type.ts';
import { answersFile, type VersionToDescribe } from './answers-file.ts';
import { answerTypeOf } from './contract.ts';

/**
 * The types of the JSON of a version's answers, for TypeScript: as they are read, where choices are open, since the next
 * version can have further ones, and as they are sent. What may be left out is optional there; what the service fills in
 * is read all the same.
 */
export function typeScriptSource(version: VersionToDescribe): string {
  const { header, comment, message, fields } = answersFile(version);
  const comments = new Map(fields.map((field) => [field.id, field.comment]));
  const asked = version.definition.fields.filter(takesAnswer);
  const typeNamed = (name: string, words: string, isRead: boolean) => {
    const properties = asked.map((field) => {
      const isThere = isRead ? field.required && field.visibleWhen === undefined : mustBeAnswered(field);
      const type = `${propertyName(field.id)}${isThere ? '' : '?'}: ${typeOf(field, isRead)};\n`;
      return `${documented(comments.get(field.id) ?? [], '  ')}  ${type}`;
    });
    return `${documented([...comment, words])}export type ${name} = {\n${properties.join('')}};\n`;
  };
  const needed = new Set(version.definition.fields.map(answerTypeOf));
  const parts = Object.entries(partTypes).filter(([, { of }]) => of.some((type) => needed.has(type)));
  return [
    header.map((line) => `// ${line}\n`).join(''),
    typeNamed(message, 'As they are read. Later versions can have further choices.', true),
    typeNamed(`${message}Input`, 'As they are sent.', false),
    ...parts.map(([name, { source }]) => `export type ${name} = ${source};\n`),
  ].join('\n');
}

function typeOf(field: Field, isOpen: boolean): string {
  const type = answerTypeOf(field);
  switch (type) {
    case 'string':
      return choiceOf(field, isOpen);
    case 'double':
    case 'int32':
      return 'number';
    case 'bool':
      return 'boolean';
    case 'repeated string':
      return `(${choiceOf(field, isOpen)})[]`;
    case 'repeated File':
      return 'File[]';
    case 'File':
    case 'Address':
    case 'Signature':
      return type;
    case 'map<string, string>':
      return rowsOf(field, choiceOf(field, isOpen), isOpen);
    case 'map<string, google.protobuf.ListValue>':
      return rowsOf(field, `(${choiceOf(field, isOpen)})[]`, isOpen);
    case 'google.protobuf.Value':
      return 'string | number | boolean';
    case undefined:
      return 'never';
    default:
      return type satisfies never;
  }
}

function choiceOf({ options, allowOther }: Field, isOpen: boolean): string {
  return options === undefined ? 'string' : unionOf(options, isOpen || allowOther === true);
}

function rowsOf({ rows = [] }: Field, cell: string, isOpen: boolean): string {
  return `{ [row in ${unionOf(rows, isOpen)}]?: ${cell} }`;
}

/** Of an open union, editors go on suggesting the values beside any text. */
function unionOf(choices: readonly { value: string }[], isOpen: boolean): string {
  const values = choices.map(({ value }) => JSON.stringify(value)).join(' | ');
  return isOpen ? `${values} | (string & {})` : values;
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
