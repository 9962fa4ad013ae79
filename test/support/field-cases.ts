import type { Json } from '../../src/domain/json.ts';

/**
 * What each type of field takes and refuses, and how an answer reads everywhere: for tests of every layer. Each field
 * has the id `it`.
 */
export const fieldCases: FieldCase[] = [
  {
    name: 'a rating',
    field: { type: 'rating' },
    normal: { max: 5, icon: 'star' },
    good: [1, 5],
    bad: [
      [0, 'it too_small'],
      [6, 'it too_big'],
      [2.5, 'it invalid_type'],
      ['3', 'it invalid_type'],
    ],
    inputs: { it: ['4'] },
    read: 4,
    words: '4 / 5',
    cell: '4',
    question: 'it (rating)',
    schema: { type: 'integer', minimum: 1, maximum: 5 },
  },
  {
    name: 'a rating in numbers',
    field: { type: 'rating', max: 10, icon: 'number' },
    normal: { max: 10, icon: 'number' },
    good: [10],
    bad: [[11, 'it too_big']],
    inputs: { it: ['ten'] },
    read: 'ten',
    question: 'it (rating)',
    schema: { type: 'integer', minimum: 1, maximum: 10 },
  },
  {
    name: 'a scale',
    field: { type: 'scale', min: 0, max: 10, minLabel: 'poor', maxLabel: 'great' },
    normal: { min: 0, max: 10 },
    good: [0, 10],
    bad: [
      [-1, 'it too_small'],
      [11, 'it too_big'],
      [true, 'it invalid_type'],
    ],
    inputs: { it: ['0'] },
    read: 0,
    words: '0 / 10',
    cell: '0',
    question: 'it (scale): 0 = poor, 10 = great',
    schema: { type: 'integer', minimum: 0, maximum: 10 },
  },
  {
    name: 'a statement',
    field: { type: 'statement' },
    normal: {},
    good: [],
    bad: [
      ['read', 'it unrecognized_keys'],
      [null, 'it unrecognized_keys'],
    ],
    inputs: { it: ['read'] },
    read: undefined,
  },
];

/** Definitions that are refused, with the place of each problem. */
export const refusedFields: [field: object, ...problems: string[]][] = [
  [{ type: 'rating', max: 1 }, 'max too_small'],
  [{ type: 'rating', max: 11 }, 'max too_big'],
  [{ type: 'rating', max: '5' }, 'max invalid_type'],
  [{ type: 'rating', max: 2.5 }, 'max invalid_type'],
  [{ type: 'rating', min: 0 }, 'min unrecognized_keys'],
  [{ type: 'rating', icon: 'heart' }, 'icon invalid_enum_value'],
  [{ type: 'rating', defaultValue: 6 }, 'defaultValue too_big'],
  [{ type: 'scale', min: 2 }, 'min too_big'],
  [{ type: 'scale', max: 1 }, 'max too_small'],
  [{ type: 'scale', min: 0, max: 11 }, 'max too_big'],
  [{ type: 'scale', minLabel: '' }, 'minLabel too_small'],
  [{ type: 'scale', maxLabel: 'x'.repeat(101) }, 'maxLabel too_big'],
  [{ type: 'scale', icon: 'star' }, 'icon unrecognized_keys'],
  [{ type: 'statement', required: true }, 'required custom'],
  [{ type: 'statement', defaultValue: 'x' }, 'defaultValue custom'],
  [{ type: 'text', minLabel: 'x' }, 'minLabel unrecognized_keys'],
];

export type FieldCase = {
  name: string;
  /** As an author writes it, without its id. */
  field: object;
  /** What a checked definition has beside that. */
  normal: object;
  good: Json[];
  /** Refused answers, with the place below `answers` and the code of what is wrong. */
  bad: [answer: Json, ...problems: string[]][];
  /** The inputs of an HTML form by name, and the answer that they are read as. */
  inputs: Record<string, string[]>;
  read: Json | undefined;
  /** How that answer reads in English, and in a cell of CSV. */
  words?: string;
  cell?: string;
  /** What an agent is asked, and the schema of its answer; absent: nothing. */
  question?: string;
  schema?: object;
};
