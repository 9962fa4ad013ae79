import { conditionInWords } from '../answers/agent-schema.ts';
import type { FormDefinition } from '../definition/definition.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import type { AnswerType } from '../fields/field-type.ts';
import { DEFAULT_MAX_LENGTH } from '../fields/text.ts';
import { ownValue } from '../json/json.ts';
import { answerTypeOf, type Contract, reservedRanges, snakeCase } from './contract.ts';

/** What is generated of a version: one file with one message. */
export function answersFile(version: VersionToDescribe): AnswersFile {
  const { definition, contract } = version;
  const fields = definition.fields.filter(takesAnswer).flatMap((field): AnswerField[] => {
    const slot = ownValue(contract.fields, field.id);
    const type = answerTypeOf(field);
    return slot === undefined || type === undefined
      ? []
      : [{ ...slot, id: field.id, type, comment: fieldInWords(field) }];
  });
  const types = new Set(fields.map(({ type }) => type.replace('repeated ', '')));
  const folder = contract.package.replaceAll('.', '/');
  return {
    path: `${folder}/${snakeCase(contract.message)}.proto`,
    package: contract.package,
    goPackage: `headlessforms.example/go/${folder};${contract.package.split('.').at(-1)}`,
    message: contract.message,
    header: headerOf(version),
    comment: lines(definition.name, definition.description),
    reserved: reservedRanges(contract),
    fields,
    parts: Object.entries(partMessages).filter(([name]) => types.has(name)),
    usesStruct: fields.some(({ type }) => type.includes('google.protobuf.')),
  };
}

/** The name in JSON that protoc gives a field which has no other. */
export function protocJsonName(name: string): string {
  return name.replace(/_+(.?)/g, (_, next: string) => next.toUpperCase());
}

/** What a generated file says first. */
function headerOf({ formId, version, checksum, definition }: VersionToDescribe): string[] {
  const form = `Answers to the form ${formId === '' ? '' : `${formId}, `}"${lines(definition.name).join(' ')}"`;
  return version === undefined
    ? [
        `${form}, by a definition that is not published.`,
        'The numbers are provisional until it is published.',
      ]
    : [`${form}, version ${version}.`, `SHA-256 of the version: ${checksum}`];
}

/** The words of a field and the rules that its type does not say, in lines without control characters. */
function fieldInWords(field: Field): string[] {
  const { label, description, required, visibleWhen, answeredBy } = field;
  const rules = [
    ...(required ? ['Required'] : []),
    ...(visibleWhen === undefined ? [] : [`Asked if ${conditionInWords(visibleWhen)}`]),
    ...(answeredBy === 'anyone'
      ? []
      : [answeredBy === 'human' ? 'Answered by a person' : 'Answered by an agent']),
    ...bounds.flatMap(([attribute, words]) => {
      const value = field[attribute];
      const isSaid =
        value !== undefined && value !== (attribute === 'maxLength' ? DEFAULT_MAX_LENGTH : undefined);
      return isSaid ? [`${words}: ${[value].flat().join(', ')}`] : [];
    }),
    ...choicesInWords('Rows', field.rows),
    ...choicesInWords('Values', field.options),
    ...(field.allowOther === true ? ['Or another text'] : []),
  ];
  return [...lines(label, description), ...lines(...rules)];
}

const bounds = [
  ['min', 'At least'],
  ['max', 'At most'],
  ['step', 'A multiple of'],
  ['minLength', 'Fewest characters'],
  ['maxLength', 'Most characters'],
  ['pattern', 'Pattern (RE2)'],
  ['minItems', 'Fewest choices'],
  ['maxItems', 'Most choices'],
  ['accept', 'Takes'],
  ['maxBytes', 'Most bytes'],
  ['maxFiles', 'Most files'],
] as const satisfies [keyof Field, string][];

/** `Values: "s" (Small), "m" (Medium)`, a few in each line. */
function choicesInWords(what: string, choices: Field['options'] = []): string[] {
  const words = choices.map(({ value, label }) => (value === label ? `"${value}"` : `"${value}" (${label})`));
  const said: string[] = [];
  for (let at = 0; at < words.length; at += CHOICES_IN_A_LINE) {
    const some = words.slice(at, at + CHOICES_IN_A_LINE).join(', ');
    said.push(at === 0 ? `${what}: ${some}` : `  ${some}`);
  }
  return said;
}

const CHOICES_IN_A_LINE = 5;

/** Texts as lines of a comment: authors may write what would end it or a line. */
function lines(...texts: (string | undefined)[]): string[] {
  return texts
    .flatMap((text) => (text ?? '').split(/[\n\r\v\f\u0085\u2028\u2029]+/))
    .map((line) => line.replaceAll(/\p{Cc}/gu, ' ').trimEnd())
    .filter((line) => line !== '');
}

const fileParts: Part[] = [
  ['upload_id', 'string'],
  ['filename', 'string'],
  ['content_type', 'string'],
  ['size', 'int32'],
  ['sha256', 'string'],
  ['url', 'string'],
];

/** The messages of answers that have parts; the place of a part is its number. Of a file, only `upload_id` is sent. */
const partMessages: Record<string, Part[]> = {
  File: fileParts,
  Address: ['line1', 'line2', 'city', 'region', 'postal_code', 'country'].map((name) => [name, 'string']),
  Signature: [...fileParts, ['text', 'string']],
};

/** A published version, or what is not published, which has no number. */
export type VersionToDescribe = {
  /** Empty: there is no such form yet. */
  formId: string;
  version?: number | undefined;
  checksum?: string;
  definition: FormDefinition;
  contract: Contract;
};

export type AnswersFile = {
  /** Where buf looks for it. */
  path: string;
  package: string;
  /** Where its Go code goes unless buf's managed mode says otherwise. */
  goPackage: string;
  message: string;
  header: string[];
  comment: string[];
  reserved: [first: number, last: number][];
  fields: AnswerField[];
  /** The nested messages that the fields need. */
  parts: [name: string, parts: Part[]][];
  usesStruct: boolean;
};

export type AnswerField = { id: string; name: string; number: number; type: AnswerType; comment: string[] };

/** A field of a nested message: JSON calls it by its name. */
export type Part = [name: string, type: 'string' | 'int32'];
