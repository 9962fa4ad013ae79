import { custom, type Violation } from '../errors/violations.ts';
import type { FieldTypeRules } from './field-type.ts';

/** A text on the page: its label is the heading, its description what follows. It takes no answer. */
export const statement: FieldTypeRules<StatementField> = {
  attributes: {},
  problems: ({ required, defaultValue }, _sent, path) => [
    ...(required ? [noAnswer(`${path}.required`)] : []),
    ...(defaultValue === undefined ? [] : [noAnswer(`${path}.defaultValue`)]),
  ],
  check: () => (_answer, path) => [noAnswer(path)],
  jsonSchema: () => ({ type: 'null' }),
  sample: () => undefined,
  inWords: () => '',
  readInput: () => null,
  control: 'statement',
  kind: 'text',
};

function noAnswer(path: string): Violation {
  return custom(path, 'A statement takes no answer');
}

type StatementField = { required: boolean; defaultValue?: string | number | boolean | string[] | null };
