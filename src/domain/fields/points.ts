import { z } from 'zod';
import { type Violation, wrongType } from '../errors/violations.ts';
import { optional } from '../json/optional.ts';
import { formLimits } from '../limits/limits.ts';
import type { AttributesOf, FieldTypeRules } from './field-type.ts';
import { boundAttributes } from './number.ts';
import { readNumber } from './number-text.ts';
import { textUpTo } from './text.ts';

const endLabel = textUpTo(formLimits.endLabel).exactOptional();

export const ratingAttributes = {
  max: boundAttributes.max,
  icon: optional(z.enum(['star', 'number']), 'rating: what it is given in; default star.'),
};

export const scaleAttributes = {
  ...boundAttributes,
  minLabel: endLabel.describe('scale: what the least point means.'),
  maxLabel: endLabel.describe('scale: what the greatest point means.'),
};

/** A whole number from 1 to `max`, of 2 to 10, given in stars or numbers. */
export const rating: FieldTypeRules<RatingField> = {
  attributes: ratingAttributes,
  defaults: ({ max = DEFAULT_MAX, icon = 'star' }) => ({ max, icon }),
  problems: ({ max = DEFAULT_MAX }, _sent, path) => pointProblems(max, `${path}.max`, 2, 10),
  ...pointsBetween<RatingField>(({ max }) => [1, typeof max === 'number' ? max : DEFAULT_MAX]),
  control: 'rating',
};

/** A whole number from `min`, 0 or 1, to `max`, at most 10, with words at both ends. */
export const scale: FieldTypeRules<ScaleField> = {
  attributes: scaleAttributes,
  defaults: ({ min = DEFAULT_MIN, max = DEFAULT_MAX }) => ({ min, max }),
  problems: ({ min = DEFAULT_MIN, max = DEFAULT_MAX }, _sent, path) => [
    ...pointProblems(min, `${path}.min`, 0, 1),
    ...pointProblems(max, `${path}.max`, typeof min === 'number' ? Math.min(min, 1) + 1 : 1, 10),
  ],
  ...pointsBetween<ScaleField>(({ min, max }) => [
    typeof min === 'number' ? min : DEFAULT_MIN,
    typeof max === 'number' ? max : DEFAULT_MAX,
  ]),
  control: 'scale',
};

/** What all types do the same way whose answer is a whole number between two others. */
function pointsBetween<Field>(endsOf: (field: Field) => [min: number, max: number]) {
  return {
    check: (field) => {
      const [min, max] = endsOf(field);
      return (answer, path) => pointProblems(answer, path, min, max);
    },
    answerType: () => 'int32',
    jsonSchema: (field) => {
      const [minimum, maximum] = endsOf(field);
      return { type: 'integer', minimum, maximum };
    },
    sample: (field) => endsOf(field)[1],
    inWords: (answer, field) => `${String(answer)} / ${endsOf(field)[1]}`,
    readInput: (values, _field, _part, typed) => readNumber(values.at(-1) ?? '', typed?.language),
    kind: 'number',
  } satisfies Partial<FieldTypeRules<Field>>;
}

/** What is wrong with a value that must be a whole number from `min` to `max`. */
function pointProblems(value: unknown, path: string, min: number, max: number): Violation[] {
  if (typeof value !== 'number' || !Number.isFinite(value)) return [wrongType(path, 'whole number', value)];
  if (!Number.isInteger(value)) return [{ path, code: 'invalid_type', message: 'Expected a whole number' }];
  if (value < min) return [{ path, code: 'too_small', message: `Must be at least ${min}` }];
  return value > max ? [{ path, code: 'too_big', message: `Must be at most ${max}` }] : [];
}

const DEFAULT_MIN = 1;
const DEFAULT_MAX = 5;

type RatingField = AttributesOf<typeof ratingAttributes>;
type ScaleField = AttributesOf<typeof scaleAttributes>;
