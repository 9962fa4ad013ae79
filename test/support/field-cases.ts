import { expect } from 'vitest';
import type { Json } from '../../src/domain/json/json.ts';

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
  {
    name: 'a choice with another answer',
    field: { type: 'radio', options: options('red', 'blue'), allowOther: true },
    normal: { allowOther: true },
    good: ['red', 'Green', 'x'.repeat(200)],
    bad: [
      ['x'.repeat(201), 'it too_big'],
      [['red'], 'it invalid_type'],
    ],
    inputs: { it: [''], 'it.other': [' Green '] },
    read: 'Green',
    words: 'Green',
    cell: 'Green',
    question: 'it (or another text)',
    schema: { type: 'string', anyOf: [{ enum: ['red', 'blue'] }, { minLength: 1, maxLength: 200 }] },
  },
  {
    name: 'a choice from a list with another answer',
    field: { type: 'select', options: options('red', 'blue'), allowOther: true },
    normal: {},
    good: ['blue', 'Green'],
    bad: [[1, 'it invalid_type']],
    inputs: { it: ['red'], 'it.other': ['Green'] },
    read: 'red',
    words: 'RED',
    cell: 'red',
    question: 'it (or another text)',
    schema: { type: 'string', anyOf: [{ enum: ['red', 'blue'] }, { minLength: 1, maxLength: 200 }] },
  },
  {
    name: 'choices with another answer',
    field: { type: 'multi_select', options: options('red', 'blue'), allowOther: true },
    normal: {},
    good: [['red', 'Green'], ['Green'], ['red', 'blue', 'Green']],
    bad: [
      [['Green', 'Yellow'], 'it.1 invalid_enum_value'],
      [['x'.repeat(201)], 'it.0 too_big'],
      [['Green', 'Green'], 'it.1 custom'],
      [['red', 2], 'it.1 invalid_type'],
    ],
    inputs: { it: ['red'], 'it.other': ['Green'] },
    read: ['red', 'Green'],
    words: 'RED, Green',
    cell: 'red|Green',
    question: 'it (or another text)',
    schema: expect.objectContaining({ type: 'array', maxContains: 1 }),
  },
  {
    name: 'a ranking',
    field: { type: 'ranking', options: options('a', 'b', 'c') },
    normal: {},
    good: [
      ['c', 'a', 'b'],
      ['a', 'b', 'c'],
    ],
    bad: [
      [['a', 'b'], 'it too_small'],
      [['a', 'b', 'c', 'a'], 'it too_big', 'it.3 custom'],
      [['a', 'b', 'b'], 'it.2 custom'],
      [['a', 'b', 'x'], 'it.2 invalid_enum_value'],
      ['a', 'it invalid_type'],
    ],
    inputs: { it: ['b', 'c', 'a'] },
    read: ['b', 'c', 'a'],
    words: '1. B\n2. C\n3. A',
    cell: 'b|c|a',
    question: 'it (ranking)',
    schema: { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 3, maxItems: 3 },
  },
  {
    name: 'a matrix',
    field: { type: 'matrix', rows: options('room', 'staff'), options: options('good', 'bad') },
    normal: { multiple: false },
    good: [{ room: 'good' }, { room: 'bad', staff: 'good' }],
    bad: [
      [{}, 'it too_small'],
      [{ room: 'fair' }, 'it.room invalid_enum_value'],
      [{ room: ['good'] }, 'it.room invalid_type'],
      [{ room: 'good', bar: 'bad' }, 'it.bar unrecognized_keys'],
      [['good'], 'it invalid_type'],
    ],
    inputs: { 'it.room': ['good'], 'it.bar': ['bad'] },
    read: { room: 'good' },
    words: 'ROOM: GOOD',
    cell: 'room=good',
    question: 'it (matrix)',
    schema: {
      type: 'object',
      properties: {
        room: { type: 'string', enum: ['good', 'bad'] },
        staff: { type: 'string', enum: ['good', 'bad'] },
      },
      additionalProperties: false,
      minProperties: 1,
    },
  },
  {
    name: 'a matrix of several',
    field: { type: 'matrix', rows: options('mo', 'tu'), options: options('am', 'pm'), multiple: true },
    normal: { multiple: true },
    good: [{ mo: ['am', 'pm'] }],
    bad: [
      [{ mo: [] }, 'it.mo too_small'],
      [{ mo: 'am' }, 'it.mo invalid_type'],
      [{ tu: ['am', 'am'] }, 'it.tu.1 custom'],
      [{ tu: ['am', 'pm', 'am'] }, 'it.tu too_big'],
      [{ tu: ['noon'] }, 'it.tu.0 invalid_enum_value'],
    ],
    inputs: { 'it.mo': ['am', 'pm'], 'it.tu': ['pm'] },
    read: { mo: ['am', 'pm'], tu: ['pm'] },
    words: 'MO: AM, PM\nTU: PM',
    cell: 'mo=am|mo=pm|tu=pm',
    question: 'it (matrix)',
    schema: expect.objectContaining({ type: 'object' }),
  },
  {
    name: 'an address',
    field: { type: 'address' },
    normal: {},
    good: [
      { line1: '1 Main St', city: 'Bern', country: 'CH' },
      { line1: 'a', line2: '', city: 'b', region: 'c', postal_code: 'd', country: 'US' },
    ],
    bad: [
      [{ line1: '1 Main St' }, 'it.city invalid_type', 'it.country invalid_type'],
      [{ line1: 'a', city: 'b', country: 'XX' }, 'it.country invalid_enum_value'],
      [{ line1: 'a', city: '', country: 'US' }, 'it.city invalid_type'],
      [{ line1: 'a', city: 'x'.repeat(101), country: 'US' }, 'it.city too_big'],
      [{ line1: 'a', city: 1, country: 'US' }, 'it.city invalid_type'],
      [{ line1: 'a', city: 'b', country: 'US', zip: '1' }, 'it.zip unrecognized_keys'],
      ['1 Main St', 'it invalid_type'],
    ],
    inputs: { 'it.line1': ['1 Main St'], 'it.line2': [' '], 'it.city': ['Bern'], 'it.country': ['CH'] },
    read: { line1: '1 Main St', city: 'Bern', country: 'CH' },
    words: '1 Main St\nBern\nSwitzerland',
    cell: 'line1=1 Main St|city=Bern|country=CH',
    question: 'it (address)',
    schema: expect.objectContaining({ required: ['line1', 'city', 'country'] }),
  },
  {
    name: 'a signature',
    field: { type: 'signature' },
    normal: { accept: ['drawn', 'typed'] },
    good: [{ text: 'Ada Lovelace' }, { text: 'x'.repeat(200) }],
    bad: [
      ['Ada', 'it invalid_type'],
      [{}, 'it.text invalid_type'],
      [{ text: 1 }, 'it.text invalid_type'],
      [{ text: ' ' }, 'it.text too_small'],
      [{ text: 'x'.repeat(201) }, 'it.text too_big'],
      [{ text: 'Ada', font: 'serif' }, 'it.font unrecognized_keys'],
      [{ upload_id: 'x' }, 'it.upload_id invalid_string'],
      [{ upload_id: 'upl_01kamz0000000000000000000v', text: 'Ada' }, 'it.text unrecognized_keys'],
    ],
    inputs: { it: [''], 'it.text': [' =Ada '] },
    read: { text: '=Ada' },
    words: '=Ada',
    cell: "'=Ada",
    question: 'it (signature)',
    schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  {
    name: 'a typed signature',
    field: { type: 'signature', accept: ['typed'] },
    normal: {},
    good: [{ text: 'Ada' }],
    bad: [[{ upload_id: 'upl_01kamz0000000000000000000v' }, 'it custom']],
    inputs: { 'it.text': ['Ada'] },
    read: { text: 'Ada' },
    words: 'Ada',
    cell: 'Ada',
    question: 'it (signature)',
    schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  {
    name: 'a drawn signature',
    field: { type: 'signature', accept: ['drawn'] },
    normal: {},
    good: [],
    bad: [[{ text: 'Ada' }, 'it custom']],
    inputs: { 'it.text': ['Ada'] },
    read: undefined,
    question: 'it (signature)',
    schema: { type: 'object', required: ['upload_id'] },
  },
];

/** Options whose labels are their values in capitals. */
function options(...values: string[]) {
  return values.map((value) => ({ label: value.toUpperCase(), value }));
}

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
  [{ type: 'text', allowOther: true }, 'allowOther unrecognized_keys'],
  [{ type: 'radio', options: options('a'), allowOther: 'yes' }, 'allowOther invalid_type'],
  [{ type: 'radio', options: options('a'), allowOther: true, defaultValue: 7 }, 'defaultValue invalid_type'],
  [{ type: 'ranking' }, 'options invalid_type'],
  [{ type: 'ranking', options: options('a') }, 'options too_small'],
  [{ type: 'ranking', options: many(31) }, 'options too_big'],
  [{ type: 'ranking', options: options('a', 'a') }, 'options.1.value custom'],
  [{ type: 'ranking', options: options('a', 'b'), allowOther: true }, 'allowOther unrecognized_keys'],
  [{ type: 'ranking', options: options('a', 'b'), defaultValue: ['a'] }, 'defaultValue too_small'],
  [{ type: 'matrix' }, 'rows invalid_type', 'options invalid_type'],
  [{ type: 'matrix', rows: options('a', 'a'), options: options('b') }, 'rows.1.value custom'],
  [{ type: 'matrix', rows: options('a b'), options: options('b') }, 'rows.0.value invalid_string'],
  [{ type: 'matrix', rows: options('__proto__'), options: options('b') }, 'rows.0.value invalid_string'],
  [{ type: 'matrix', rows: many(31), options: options('b') }, 'rows too_big'],
  [{ type: 'matrix', rows: options('a'), options: many(21) }, 'options too_big'],
  [{ type: 'radio', options: options('a'), rows: options('b') }, 'rows unrecognized_keys'],
  [{ type: 'address', options: options('a') }, 'options unrecognized_keys'],
  [{ type: 'address', defaultValue: 'Bern' }, 'defaultValue invalid_type'],
  [{ type: 'signature', accept: ['pdf'] }, 'accept.0 invalid_string'],
  [{ type: 'signature', accept: ['typed', 'image/png'] }, 'accept.1 invalid_enum_value'],
  [{ type: 'signature', accept: ['typed', 'typed'] }, 'accept.1 custom'],
  [{ type: 'signature', accept: [] }, 'accept too_small'],
  [{ type: 'signature', maxBytes: 5 }, 'maxBytes unrecognized_keys'],
  [{ type: 'signature', defaultValue: 'Ada' }, 'defaultValue custom'],
  [{ type: 'file', accept: ['drawn'] }, 'accept.0 invalid_string'],
];

function many(count: number) {
  return options(...Array.from({ length: count }, (_, index) => `v${index}`));
}

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
