import { z } from 'zod';
import { formLimits } from '../limits/limits.ts';
import type { AttributesOf, FieldTypeRules } from './field-type.ts';
import { boundAttributes, checkPoints, pointProblems, pointsSchema, readNumber } from './number.ts';

const endLabel = z.string().min(1).max(formLimits.endLabel).exactOptional();

export const scaleAttributes = {
  ...boundAttributes,
  minLabel: endLabel.describe('scale: what the least point means.'),
  maxLabel: endLabel.describe('scale: what the greatest point means.'),
};

/** A whole number from `min`, 0 or 1, to `max`, at most 10, with words at both ends. */
export const scale: FieldTypeRules<ScaleField> = {
  attributes: scaleAttributes,
  defaults: ({ min = DEFAULT_MIN, max = DEFAULT_MAX }) => ({ min, max }),
  problems: ({ min = DEFAULT_MIN, max = DEFAULT_MAX }, _sent, path) => [
    ...pointProblems(min, `${path}.min`, 0, 1),
    ...pointProblems(max, `${path}.max`, typeof min === 'number' ? Math.min(min, 1) + 1 : 1, 10),
  ],
  check: (field) => checkPoints(...endsOf(field)),
  answerType: () => 'int32',
  jsonSchema: (field) => pointsSchema(...endsOf(field)),
  sample: (field) => endsOf(field)[1],
  inWords: (answer, field) => `${String(answer)} / ${endsOf(field)[1]}`,
  readInput: (values) => readNumber(values.at(-1) ?? ''),
  control: 'scale',
  kind: 'number',
};

function endsOf({ min, max }: ScaleField): [min: number, max: number] {
  return [typeof min === 'number' ? min : DEFAULT_MIN, typeof max === 'number' ? max : DEFAULT_MAX];
}

const DEFAULT_MIN = 1;
const DEFAULT_MAX = 5;

type ScaleField = AttributesOf<typeof scaleAttributes>;
