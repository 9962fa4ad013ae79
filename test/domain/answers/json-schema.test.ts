import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { answersSchema, sampleAnswers } from '../../../src/domain/answers/json-schema.ts';
import { checkDefinition, type FormDefinition } from '../../../src/domain/definition/definition.ts';
import { fieldTypes } from '../../../src/domain/fields/field.ts';
import { givenDefinition, leastField, options } from '../given.ts';

function compare(fields: object[]) {
  const definition = givenDefinition({ fields });
  const form = compileForm(definition);
  const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });
  ajvFormats.default(ajv);
  const validate = ajv.compile(answersSchema(definition));
  return (answers: unknown) => ({ schema: validate(answers), check: form.checkAnswers(answers).ok });
}

const upload = { upload_id: `upl_0${'1'.repeat(25)}` };
const anything = [
  null,
  true,
  false,
  0,
  1,
  2,
  3,
  1.5,
  -1,
  'a',
  'ab',
  'abc',
  'abcd',
  '12',
  '👍👍',
  'x'.repeat(10001),
  'a@b.co',
  `${'x'.repeat(64)}@b.co`,
  `${'x'.repeat(65)}@b.co`,
  '  ',
  '\n\u00a0',
  'A <a@b.co>',
  'https://a.co/b',
  'javascript:1',
  '+41 44 123',
  '12:30',
  '12:30:59',
  '24:00',
  '2026-01-31',
  '2026-13-01',
  '2026-01-01T00:00:00Z',
  '2026-01-01T00:00+01:00',
  '2026-01-01T00:00:00',
  ['a'],
  ['a', 'b'],
  ['a', 'a'],
  ['x'],
  [1],
  {},
  { x: 1 },
  upload,
  [upload],
  [upload, upload],
  [upload, upload, upload],
  { upload_id: 'x' },
  {
    ...upload,
    x: 1,
  },
];

describe('answersSchema', () => {
  it.each([
    { type: 'text' },
    { type: 'text', minLength: 2, maxLength: 3 },
    { type: 'text', pattern: '[a-c]+|\\d+' },
    { type: 'textarea' },
    { type: 'email' },
    { type: 'email', pattern: 'a.*', maxLength: 8 },
    { type: 'url' },
    { type: 'phone' },
    { type: 'number' },
    { type: 'number', min: 1, max: 2 },
    { type: 'number', step: 0.5 },
    { type: 'boolean' },
    { type: 'checkbox' },
    { type: 'date' },
    { type: 'time' },
    { type: 'datetime' },
    { type: 'select', options: options('a', 'ab') },
    { type: 'radio', options: options('a') },
    { type: 'multi_select', options: options('a', 'b') },
    { type: 'multi_select', options: options('a', 'b', 'c'), minItems: 2, maxItems: 2 },
    { type: 'hidden' },
    { type: 'file' },
    { type: 'file', maxFiles: 2 },
  ])('accepts and refuses what the check does: %j', (attributes) => {
    const optional = compare([{ id: 'a', ...attributes }]);
    const required = compare([{ id: 'a', ...attributes, required: true }]);

    for (const answers of [{}, ...anything.map((a) => ({ a })), { b: 1 }, [], null]) {
      for (const verdict of [optional(answers), required(answers)]) {
        expect([answers, verdict.schema]).toEqual([answers, verdict.check]);
      }
    }
    expect(required({ a: '' })).toEqual({ schema: false, check: false });
    expect(required({ a: [] })).toEqual({ schema: false, check: false });
  });

  it('takes a required text of spaces alone for none, and an optional one as it is', () => {
    const required = compare([{ id: 'a', type: 'textarea', required: true }]);
    const optional = compare([{ id: 'a', type: 'textarea' }]);

    expect(required({ a: ' \n\t\u00a0' })).toEqual({ schema: false, check: false });
    expect(optional({ a: ' ' })).toEqual({ schema: true, check: true });
  });

  it('does not require what has a default or may be invisible', () => {
    const definition = givenDefinition({
      fields: [
        { id: 'a', type: 'text', required: true },
        { id: 'b', type: 'text', required: true, defaultValue: 'x' },
        { id: 'c', type: 'text', required: true, visibleWhen: { field: 'a', op: 'empty' } },
      ],
    });

    expect(answersSchema(definition).required).toEqual(['a']);
  });

  it('says who may answer', () => {
    const fields = ['human', 'agent', 'anyone'].map((answeredBy) => ({
      id: answeredBy,
      type: 'text',
      required: true,
      answeredBy,
    }));

    const { properties, required } = answersSchema(givenDefinition({ fields }));

    expect(properties).toMatchObject({
      human: { readOnly: true, 'x-answered-by': 'human' },
      agent: { 'x-answered-by': 'agent' },
    });
    expect(properties).not.toHaveProperty(['anyone', 'x-answered-by']);
    expect(required).toEqual(['agent', 'anyone']);
  });

  it('tells an agent what the field is about', () => {
    const fields = [{ id: 'a', type: 'text', description: 'For people.', agentHint: 'For agents.' }];

    expect(answersSchema(givenDefinition({ fields })).properties).toMatchObject({
      a: { title: 'A', description: 'For people.\n\nFor agents.' },
    });
  });

  it('leaves out patterns that other engines read otherwise', () => {
    const fields = [
      { id: 'a', type: 'text', pattern: '[[:alpha:]]+' },
      { id: 'b', type: 'text', pattern: '(?i)yes' },
      { id: 'c', type: 'text', pattern: '\\pL+' },
    ];

    expect(JSON.stringify(answersSchema(givenDefinition({ fields })))).not.toContain('"pattern"');
  });

  it('bears fields named like prototypes', () => {
    const verdict = compare([{ id: 'constructor', type: 'text', required: true }]);

    expect(verdict({ constructor: 'x' })).toEqual({ schema: true, check: true });
    expect(verdict({}).check).toBe(false);
  });
});

it('makes up an answer that the form takes for each type of field but files and statements', async () => {
  const form = definition(fieldTypes.map((type) => ({ id: type, ...leastField(type) })));

  const answers = sampleAnswers(form);

  expect(compileForm(form).checkAnswers(answers)).toEqual({ ok: true, answers });
  expect(Object.keys(answers)).toEqual(fieldTypes.filter((type) => type !== 'file' && type !== 'statement'));
});

it('keeps to the bounds of the fields', async () => {
  const form = definition([
    { id: 'name', type: 'text', minLength: 30, maxLength: 32, required: true },
    { id: 'short', type: 'text', maxLength: 2, required: true },
    { id: 'age', type: 'number', min: 18, step: 3, required: true },
    { id: 'from', type: 'date', min: '2040-01-01', required: true },
  ]);

  const answers = sampleAnswers(form);

  expect(compileForm(form).checkAnswers(answers)).toEqual({ ok: true, answers });
});

it('leaves out what it can make up no answer for', async () => {
  const form = definition([{ id: 'code', type: 'text', pattern: '[0-9]{4}', required: true }]);

  expect(sampleAnswers(form)).toEqual({});
});

function definition(fields: object[]): FormDefinition {
  const input = { name: 'Sample', slug: 'sample', fields, delivery: { type: 'email' } };
  const checked = checkDefinition(input, { keyless: false, allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.definition;
}
