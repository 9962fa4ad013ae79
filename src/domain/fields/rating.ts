import { z } from 'zod';
import type { AttributesOf, FieldTypeRules } from './field-type.ts';
import { boundAttributes, checkPoints, pointProblems, pointsSchema, readNumber } from './number.ts';

export const ratingAttributes = {
  max: boundAttributes.max,
  icon: z.enum(['star', 'number']).exactOptional().describe('rating: what it is given in; default star.'),
};

/** A whole number from 1 to `max`, of 2 to 10, given in stars or numbers. */
export const rating: FieldTypeRules<RatingField> = {
  attributes: ratingAttributes,
  defaults: ({ max = DEFAULT_MAX, icon = 'star' }) => ({ max, icon }),
  problems: ({ max = DEFAULT_MAX }, _sent, path) => pointProblems(max, `${path}.max`, 2, 10),
  check: (field) => checkPoints(1, maxOf(field)),
  answerType: () => 'int32',
  jsonSchema: (field) => pointsSchema(1, maxOf(field)),
  sample: maxOf,
  inWords: (answer, field) => `${String(answer)} / ${maxOf(field)}`,
  readInput: (values) => readNumber(values.at(-1) ?? ''),
  control: 'rating',
  kind: 'number',
};

function maxOf({ max }: RatingField): number {
  return typeof max === 'number' ? max : DEFAULT_MAX;
}

const DEFAULT_MAX = 5;

type RatingField = AttributesOf<typeof ratingAttributes>;
