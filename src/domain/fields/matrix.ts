import { z } from 'zod';
import { unrecognized, type Violation, wrongType } from '../errors/violations.ts';
import { isObject, type Json, type JsonObject, ownValue } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import {
  type AnswerCheck,
  type AttributesOf,
  atLeast,
  type FieldTypeRules,
  inputsOfParts,
} from './field-type.ts';
import {
  choiceProblems,
  labelOf,
  listProblems,
  notAnOption,
  optionAttributes,
  optionProblems,
  optionSchema,
  valuesOf,
} from './select.ts';
import { readText } from './text.ts';

const rowValue = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const rowError =
  'The value of a row has at most 64 letters, digits, "_" and "-", the first a letter or digit';

export const matrixAttributes = {
  ...optionAttributes,
  rows: optional(
    z
      .array(
        optionSchema
          .extend({ value: z.string().regex(rowValue, rowError).describe('The answer is keyed by it.') })
          .describe('One row.'),
      )
      .min(1)
      .max(30),
    'matrix: what each is answered with one of the options; values are unique.',
  ),
  multiple: optional(z.boolean(), 'matrix: whether a row takes several options; default false.'),
};

/** One of the options for each row, `{row: option}`, or several, `{row: [option]}`. Required: for all rows. */
export const matrix: FieldTypeRules<MatrixField> = {
  attributes: matrixAttributes,
  defaults: ({ multiple = false }) => ({ multiple }),
  problems: (field, sent, path) => [
    ...choiceProblems('rows', field.rows ?? [], sent, path),
    ...optionProblems(field, sent, path),
    ...countProblems(field, path),
  ],
  check: checkRows,
  answerType: ({ multiple }) =>
    multiple === true ? 'map<string, google.protobuf.ListValue>' : 'map<string, string>',
  jsonSchema: (field, needed) => ({
    type: 'object',
    properties: Object.fromEntries(rowsOf(field).map((row) => [row, rowSchema(field)])),
    ...(needed && { required: rowsOf(field) }),
    additionalProperties: false,
    minProperties: 1,
  }),
  lacking: (answer, field) =>
    isObject(answer) ? rowsOf(field).filter((row) => !Object.hasOwn(answer, row)) : [],
  sample: (field) => {
    const [first = ''] = valuesOf(field);
    return Object.fromEntries(rowsOf(field).map((row) => [row, field.multiple === true ? [first] : first]));
  },
  inWords: (answer, field) =>
    (field.rows ?? [])
      .flatMap(({ label, value }) => {
        const chosen = isObject(answer) && Object.hasOwn(answer, value) ? [answer[value]].flat() : [];
        const labels = chosen.map((choice) => labelOf(field, choice));
        return labels.length === 0 ? [] : [`${label}: ${labels.join(', ')}`];
      })
      .join('\n'),
  readInput: (_values, field, part) => readRows(field, part),
  parts: rowsOf,
  toInputs: inputsOfParts,
  control: 'matrix',
  kind: 'parts',
};

function countProblems({ options = [] }: MatrixField, path: string): Violation[] {
  if (options.length <= MAX_OPTIONS) return [];
  const message = `A matrix has at most ${MAX_OPTIONS} options`;
  return [{ path: `${path}.options`, code: 'too_big', message }];
}

function checkRows(field: MatrixField): AnswerCheck {
  const values = new Set(valuesOf(field));
  const rows = rowsOf(field);
  return (answer, path) => {
    if (!isObject(answer)) return [wrongType(path, 'object', answer)];
    const given = Object.keys(answer);
    if (given.length === 0) return [{ path, code: 'too_small', message: 'Must answer at least 1 row' }];
    const unknown = given.filter((row) => !rows.includes(row));
    return [
      ...rows.flatMap((row) => {
        const chosen = ownValue(answer, row);
        return chosen === undefined ? [] : rowAnswerProblems(field, values, chosen, `${path}.${row}`);
      }),
      ...unrecognized(path, unknown, rows),
    ];
  };
}

function rowAnswerProblems(
  { multiple }: MatrixField,
  values: ReadonlySet<string>,
  chosen: Json,
  path: string,
): Violation[] {
  if (multiple !== true) {
    if (typeof chosen !== 'string') return [wrongType(path, 'string', chosen)];
    return values.has(chosen) ? [] : [notAnOption(path)];
  }
  if (!Array.isArray(chosen)) return [wrongType(path, 'array', chosen)];
  if (chosen.length === 0) return [{ path, code: 'too_small', message: 'Must have at least 1 choice' }];
  if (chosen.length > values.size) {
    return [{ path, code: 'too_big', message: `Must have at most ${values.size} choices` }];
  }
  return listProblems(chosen, values, path);
}

function rowSchema(field: MatrixField): JsonObject {
  const one = { type: 'string', enum: valuesOf(field) };
  return field.multiple === true
    ? { type: 'array', items: one, uniqueItems: true, minItems: atLeast(1, true) }
    : one;
}

/** Rows without a value are left out; without any, there is no answer. */
function readRows(field: MatrixField, part: (name: string) => readonly string[]): Json {
  const rows = rowsOf(field).flatMap((row): [string, Json][] => {
    const chosen = part(row).filter((value) => value !== '');
    if (chosen.length === 0) return [];
    return [[row, field.multiple === true ? chosen : readText(chosen)]];
  });
  return rows.length === 0 ? null : Object.fromEntries(rows);
}

function rowsOf({ rows = [] }: MatrixField): string[] {
  return rows.map(({ value }) => value);
}

/** As many as can be told apart in a row; with 30 rows 600 places to tick. */
const MAX_OPTIONS = 20;

type MatrixField = AttributesOf<typeof matrixAttributes>;
