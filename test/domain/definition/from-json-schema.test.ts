import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { answersSchema, sampleAnswers } from '../../../src/domain/answers/json-schema.ts';
import { definitionFromSchema, schemaPathOf } from '../../../src/domain/definition/from-json-schema.ts';
import { checkQuestions } from '../../../src/domain/definition/questions.ts';

/** The checked definition that a schema becomes. */
function definitionOf(schema: object) {
  const read = definitionFromSchema(JSON.parse(JSON.stringify(schema)));
  if (!read.ok) throw new Error(JSON.stringify(read.violations));
  const checked = checkQuestions(read.definition, { allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.definition;
}

function refusedPaths(schema: object): string[] {
  const read = definitionFromSchema(JSON.parse(JSON.stringify(schema)));
  return read.ok ? [] : read.violations.map(({ path }) => path);
}

const object = (properties: object, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
});

describe('a schema with too much of something', () => {
  const text = { type: 'string' };
  const named = (count: number, value: unknown = text) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, value]));
  const shared = { $ref: '#/$defs/S' };
  const cases: [what: string, schema: object, ...paths: string[]][] = [
    ['properties', object(named(21)), 'properties'],
    ['required names', { ...object({ a: text }), required: Object.keys(named(20_000)) }, ''],
    ['keywords', object({ a: { ...text, ...named(101, 1) } }), 'properties.a', 'properties.a'],
    [
      'keywords of a schema that properties share',
      { ...object(named(2, shared)), $defs: { S: { ...text, ...named(3_500, 1) } } },
      'properties.p0',
      'properties.p0',
      'properties.p1',
      'properties.p1',
    ],
    ['choices', object({ a: { enum: Object.keys(named(501)) } }), 'properties.a', 'properties.a'],
  ];

  it.each(cases)('is refused for its %s alone', (_what, schema, ...paths) => {
    expect(refusedPaths(schema)).toEqual(paths);
  });

  it('has its first hundred problems named', () => {
    expect(refusedPaths(object(named(20, { ...text, ...named(99, 1) })))).toHaveLength(100);
    expect(refusedPaths(object({ a: text }, Object.keys(named(500))))).toHaveLength(100);
  });

  it('has a long pattern refused as it is, at its place', () => {
    const read = definitionFromSchema(object({ a: { ...text, pattern: '['.repeat(40_000) } }));
    const checked = read.ok && checkQuestions(read.definition, { allowPrivateUrls: false });

    expect(checked).toMatchObject({
      ok: false,
      violations: [{ path: 'fields.0.pattern', code: 'too_big' }],
    });
  });
});

const byZod = z.object({
  name: z.string().min(2).max(80).meta({ title: 'Your name', description: 'As in your passport.' }),
  mail: z.email(),
  site: z.url().optional(),
  day: z.iso.date(),
  at: z.iso.datetime(),
  count: z.int().min(1).max(9),
  positive: z.int().positive(),
  price: z.number().multipleOf(0.5),
  agreed: z.boolean(),
  plan: z.enum(['free', 'pro']).default('free'),
  tags: z
    .array(z.enum(['a', 'b', 'c']))
    .min(1)
    .max(2),
  code: z.string().regex(/^[A-Z]{3}$/),
  only: z.literal('yes'),
});

/** As `model_json_schema` of Pydantic 2 writes it. */
const byPydantic = {
  $defs: { Plan: { enum: ['free', 'pro'], title: 'Plan', type: 'string' } },
  description: 'What we need.',
  properties: {
    plan: { $ref: '#/$defs/Plan' },
    fallback: { allOf: [{ $ref: '#/$defs/Plan' }], default: 'pro' },
    plans: { items: { $ref: '#/$defs/Plan' }, title: 'Plans', type: 'array', uniqueItems: true },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null, title: 'Note' },
    day: { format: 'date', title: 'Day', type: 'string' },
    seats: { exclusiveMinimum: 0, maximum: 10, title: 'Seats', type: 'integer' },
    page: { format: 'uri', maxLength: 2083, minLength: 1, title: 'Page', type: 'string' },
  },
  required: ['plan', 'plans', 'day', 'seats', 'page'],
  title: 'Order',
  type: 'object',
};

describe('a JSON Schema as questions', () => {
  it('reads what Zod writes, and its answers are what Zod wants', () => {
    const definition = definitionOf(z.toJSONSchema(byZod));

    expect(definition.fields.map(({ id, type }) => [id, type])).toEqual([
      ['name', 'text'],
      ['mail', 'email'],
      ['site', 'url'],
      ['day', 'date'],
      ['at', 'datetime'],
      ['count', 'number'],
      ['positive', 'number'],
      ['price', 'number'],
      ['agreed', 'boolean'],
      ['plan', 'radio'],
      ['tags', 'multi_select'],
      ['code', 'text'],
      ['only', 'radio'],
    ]);
    expect(definition.fields[0]).toMatchObject({
      label: 'Your name',
      minLength: 2,
      maxLength: 80,
      required: true,
    });
    expect(definition.fields.find(({ id }) => id === 'positive')).toMatchObject({ min: 1, step: 1 });
    expect(byZod.parse({ ...sampleAnswers(definition), code: 'ABC' })).toBeTruthy();
  });

  it('reads what Pydantic writes: references, unions with null, and bounds that are not allowed themselves', () => {
    const definition = definitionOf(byPydantic);

    expect([definition.name, definition.description]).toEqual(['Order', 'What we need.']);
    expect(definition.fields.map(({ id, type, required }) => [id, type, required])).toEqual([
      ['plan', 'radio', true],
      ['fallback', 'radio', false],
      ['plans', 'multi_select', true],
      ['note', 'text', false],
      ['day', 'date', true],
      ['seats', 'number', true],
      ['page', 'url', true],
    ]);
    expect(definition.fields.at(1)).toMatchObject({ defaultValue: 'pro' });
    expect(definition.fields.at(5)).toMatchObject({ min: 1, max: 10, step: 1 });
  });

  it.each([
    ['Zod', z.toJSONSchema(byZod)],
    ['Pydantic', byPydantic],
  ])('is the inverse of the JSON Schema of the answers, for that of %s', (_name, given) => {
    const definition = definitionOf(given);
    const ajv = addFormats.default(new Ajv2020({ strict: false }));
    const [asked, own] = [given, answersSchema(definition)].map((schema) => ajv.compile(schema));
    const answers = { ...sampleAnswers(definition), code: 'ABC', note: 'x' };
    const known = Object.fromEntries(
      Object.entries(answers).filter(([id]) => definition.fields.some((field) => field.id === id)),
    );

    expect([asked?.(known), own?.(known)], JSON.stringify([asked?.errors, own?.errors])).toEqual([
      true,
      true,
    ]);
    for (const { id, required } of definition.fields) {
      const { [id]: _, ...without } = known;
      if (required && !['plan'].includes(id))
        expect([id, asked?.(without), own?.(without)]).toEqual([id, false, false]);
      for (const wrong of [{}, 12.25, 'not it', ['nothing'], '']) {
        if (asked?.({ ...known, [id]: wrong }) === false) {
          expect([id, wrong, own?.({ ...known, [id]: wrong })]).toEqual([id, wrong, false]);
        }
      }
    }
  });

  it('reads the JSON Schema of a form back as the same questions', () => {
    const first = definitionOf(z.toJSONSchema(byZod));
    // What a pattern and a format say twice is said once, and null is a way not to answer.
    const plain = {
      ...first,
      fields: first.fields.filter(({ type }) => !['date', 'datetime', 'email', 'url'].includes(type)),
    };

    const again = definitionOf(answersSchema(plain));

    const told = (fields: typeof first.fields) =>
      fields.map(({ id, type, min, max, step, options }) => ({ id, type, min, max, step, options }));
    expect(told(again.fields)).toEqual(told(plain.fields));
  });

  it.each([
    ['an object within', object({ a: { type: 'object', properties: {} } }), 'properties.a.type'],
    ['a list of texts', object({ a: { type: 'array', items: { type: 'string' } } }), 'properties.a.items'],
    ['a union', object({ a: { anyOf: [{ type: 'string' }, { type: 'number' }] } }), 'properties.a'],
    ['an enum of numbers', object({ a: { enum: [1, 2] } }), 'properties.a'],
    ['an enum of whole numbers', object({ a: { type: 'integer', enum: [1, 2] } }), 'properties.a'],
    ['an enum of another type', object({ a: { type: 'number', enum: ['a'] } }), 'properties.a'],
    ['two enums at once', object({ a: { enum: ['a', 'b'], oneOf: [{ const: 'a' }] } }), 'properties.a'],
    ['a choice with a rule', object({ a: { oneOf: [{ const: 'a', not: {} }] } }), 'properties.a.not'],
    ['what is read only', object({ a: { type: 'string', readOnly: true } }), 'properties.a.readOnly'],
    ['a boolean that must be false', object({ a: { type: 'boolean', const: false } }), 'properties.a'],
    [
      'a consent that nobody has to give',
      object({ a: { type: 'boolean', const: true } }, []),
      'properties.a',
    ],
    [
      'a consent that may be null',
      object({ a: { anyOf: [{ type: 'boolean', const: true }, { type: 'null' }] } }),
      'properties.a',
    ],
    ['an unknown format', object({ a: { type: 'string', format: 'ipv4' } }), 'properties.a.format'],
    [
      'a bound between numbers',
      object({ a: { type: 'number', exclusiveMinimum: 0 } }),
      'properties.a.exclusiveMinimum',
    ],
    [
      'a rule between properties',
      { ...object({ a: { type: 'string' } }), dependentRequired: {} },
      'dependentRequired',
    ],
    ['a keyword that is not known', object({ a: { type: 'boolean', not: {} } }), 'properties.a.not'],
    ['a reference to elsewhere', object({ a: { $ref: 'https://example.com/a' } }), 'properties.a.$ref'],
    [
      'a reference in a circle',
      { ...object({ a: { $ref: '#/$defs/A' } }), $defs: { A: { $ref: '#/$defs/A' } } },
      'properties.a',
    ],
    ['a name that no field has', object({ '1a': { type: 'string' } }), 'properties.1a'],
    ['what is required and not there', object({ a: { type: 'string' } }, ['b']), 'required'],
    ['no object', { type: 'string' }, 'type'],
    ['no properties', { type: 'object' }, 'properties'],
  ])('refuses %s with its path', (_name, schema, path) => {
    expect(refusedPaths(schema)).toContain(path);
  });

  it('takes of two bounds the one that leaves fewer numbers', () => {
    const boundsOf = (schema: object) => {
      const [{ min, max } = {}] = definitionOf(object({ a: { type: 'integer', ...schema } })).fields;
      return [min, max];
    };

    expect(boundsOf({ minimum: 1, exclusiveMinimum: 5, maximum: 9, exclusiveMaximum: 9 })).toEqual([6, 8]);
    expect(boundsOf({ minimum: 7, exclusiveMinimum: 5, maximum: 8, exclusiveMaximum: 20 })).toEqual([7, 8]);
  });

  it('means with generated schemas what they mean', () => {
    const ajv = new Ajv2020({
      strict: false,
      formats: { date: isoDate, 'date-time': true, email: /@/, time: isoTime },
    });
    const disagreements: string[] = [];
    for (const [schema, required] of generatedSchemas()) {
      const whole = object({ a: schema }, required ? ['a'] : []);
      const read = definitionFromSchema(JSON.parse(JSON.stringify(whole)));
      if (!read.ok) {
        expect(read.violations.every(({ path }) => path.startsWith('properties.a'))).toBe(true);
        continue;
      }
      const checked = checkQuestions(read.definition, { allowPrivateUrls: false });
      if (!checked.ok) continue;
      const form = compileForm(checked.definition);
      const check = (answers: object) => form.checkAnswers(answers);
      for (const value of values) {
        const answers = { a: value };
        const isAbsent = value === null && ajv.validate(whole, {});
        const [wanted, taken] = [ajv.validate(whole, answers) || isAbsent, check(answers).ok];
        // An empty text, or list, is no answer.
        const isNothing = value === '' || (Array.isArray(value) && value.length === 0);
        if (wanted !== taken && !isNothing)
          disagreements.push(JSON.stringify([schema, required, value, wanted]));
      }
      // What may be null need not be there.
      const isLeftOut = check({}).ok;
      const mayBe = ajv.validate(whole, {}) || ajv.validate(whole, { a: null });
      if (isLeftOut !== mayBe) disagreements.push(JSON.stringify([schema, required, 'absent', mayBe]));
    }

    expect(disagreements).toEqual([]);
  });

  it('names the place in the schema of what is wrong with its questions', () => {
    const definition = { fields: [{ id: 'a' }] };

    expect(
      ['fields.0.pattern', 'fields.0.min', 'fields.0.options.2.value', 'fields', 'name'].map((path) =>
        schemaPathOf(path, definition),
      ),
    ).toEqual([
      'properties.a.pattern',
      'properties.a.minimum',
      'properties.a.enum.2.value',
      'properties',
      'title',
    ]);
  });

  it('finds a pattern anywhere in the text, as JSON Schema does', () => {
    const check = (pattern: string) =>
      definitionOf(object({ a: { type: 'string', pattern } })).fields[0]?.pattern;

    expect([check('^[A-Z]+$'), check('b'), check('^a|b$'), check('^(?:a|b)$')]).toEqual([
      '[A-Z]+',
      '(?s:.*)(?:b)(?s:.*)',
      '(?s:.*)(?:^a|b$)(?s:.*)',
      '(?:a|b)',
    ]);
  });
});

const isoDate = /^\d{4}-\d\d-\d\d$/;

/** A time of day as Pydantic and Zod take it, without an offset. */
const isoTime = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/;

const scalars = [
  [null, true, false, 0, 1, 2, 2.5, 5, 6, 8, 9, 10, -1, 'a', 'b', 'c', 'abc', ''],
  ['2030-01-31', '10:00', '10:00:30', '25:00', 'a@example.com', '1', 'true', 'null'],
].flat();
const values = [...scalars, [], ['a'], ['b', 'a'], ['c'], [1], {}];

/** Schemas of every type with what may stand beside it, each required and not, and in the ways that null is let in. */
function generatedSchemas(): [schema: object, required: boolean][] {
  const whole = [
    {},
    { minimum: 2 },
    { exclusiveMinimum: 2 },
    { minimum: 2, exclusiveMinimum: 5 },
    { multipleOf: 2 },
  ];
  const ends = [{}, { maximum: 8 }, { exclusiveMaximum: 9 }, { maximum: 9, exclusiveMaximum: 6 }];
  const numbers = whole.flatMap((least) => ends.map((most) => ({ ...least, ...most })));
  const plain: Record<string, unknown>[] = [
    ...numbers.flatMap((bounds) => ['integer', 'number'].map((type) => ({ type, ...bounds }))),
    ...[{}, { const: true }, { const: false }, { enum: [true] }, { enum: [true, false] }].map((more) => ({
      type: 'boolean',
      ...more,
    })),
    ...[
      {},
      { minLength: 2 },
      { maxLength: 1 },
      { format: 'date' },
      { format: 'time' },
      { format: 'email' },
    ].map((more) => ({ type: 'string', ...more })),
    { enum: ['a', 'b'] },
    { enum: ['a', 'null'] },
    { enum: [1, 2] },
    { const: 'a' },
    { const: 1 },
    { type: 'string', enum: ['a', 'b'] },
    { type: 'integer', enum: [1, 2] },
    { type: 'number', enum: ['a'] },
    { oneOf: ['a', 'b'].map((value) => ({ const: value, title: value.toUpperCase() })) },
    { type: 'string', anyOf: [{ const: 'a', title: 'A' }] },
    { enum: ['a', 'b'], oneOf: [{ const: 'a' }] },
    { type: 'array', items: { enum: ['a', 'b'] }, uniqueItems: true },
    { type: 'array', items: { enum: ['a', 'b'] }, uniqueItems: true, minItems: 2 },
    ...[true, false].map((readOnly) => ({ type: 'string', readOnly })),
  ];
  const nullable = plain.flatMap((schema) => [
    schema,
    { anyOf: [schema, { type: 'null' }] },
    { oneOf: [{ type: 'null' }, schema] },
    ...('type' in schema ? [{ ...schema, type: [schema.type, 'null'] }] : []),
    ...('enum' in schema && Array.isArray(schema.enum) ? [{ ...schema, enum: [...schema.enum, null] }] : []),
    ...('oneOf' in schema && Array.isArray(schema.oneOf)
      ? [{ oneOf: [...schema.oneOf, { type: 'null' }] }]
      : []),
  ]);
  return nullable.flatMap((schema): [object, boolean][] => [
    [schema, true],
    [schema, false],
  ]);
}
