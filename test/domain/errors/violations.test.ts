import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BadRequestSchema } from '../../../gen/google/rpc/error_details_pb.js';
import { failureOf, invalid } from '../../../src/domain/errors/failure.ts';
import { custom, pathOf, unrecognized, violationsOf } from '../../../src/domain/errors/violations.ts';

function codes(schema: z.ZodType, input: unknown, root?: string): string[] {
  const { error } = schema.safeParse(input);
  return error ? violationsOf(error, input, root).map(({ path, code }) => `${path} ${code}`) : [];
}

describe('violationsOf', () => {
  it.each<[string, z.ZodType, unknown, string]>([
    ['a wrong type', z.string(), 1, 'invalid_type'],
    ['a missing value', z.string(), undefined, 'invalid_type'],
    ['a missing choice', z.enum(['a']), undefined, 'invalid_type'],
    ['a missing union', z.union([z.string(), z.number()]), undefined, 'invalid_type'],
    ['a fraction', z.int(), 1.5, 'invalid_type'],
    ['a pattern', z.string().regex(/a/), 'b', 'invalid_string'],
    ['an address', z.email(), 'b', 'invalid_string'],
    ['a URL', z.url(), 'b', 'invalid_string'],
    ['a date', z.iso.date(), 'b', 'invalid_date'],
    ['a datetime', z.iso.datetime(), 'b', 'invalid_date'],
    ['a short text', z.string().min(2), 'b', 'too_small'],
    ['a long list', z.array(z.string()).max(0), ['b'], 'too_big'],
    ['a step', z.number().multipleOf(2), 1, 'not_multiple_of'],
    ['a choice', z.enum(['a']), 'b', 'invalid_enum_value'],
    ['a literal', z.literal(true), false, 'invalid_enum_value'],
    ['a union', z.union([z.string(), z.number()]), true, 'invalid_union'],
    ['a rule about a text', z.string().refine(() => false), 'b', 'invalid_string'],
    ['a rule about a number', z.number().refine(() => false), 1, 'custom'],
    [
      'a rule that names its code',
      z.string().refine(() => false, { params: { code: 'invalid_date' } }),
      'b',
      'invalid_date',
    ],
    [
      'a rule that names no documented code',
      z.string().refine(() => false, { params: { code: 'odd' } }),
      'b',
      'invalid_string',
    ],
    ['a key of a record', z.record(z.enum(['a']), z.string()), { a: 'x', b: 'y' }, 'unrecognized_keys'],
  ])('translates %s', (_, schema, input, code) => {
    expect(codes(z.object({ at: schema }), { at: input })[0]).toMatch(new RegExp(`^at(\\.b)? ${code}$`));
  });

  it('says "Required" of a missing value, and what it is of a wrong one', () => {
    const schema = z.object({ a: z.string(), b: z.string() });
    const input = { b: null };
    const { error } = schema.safeParse(input);

    expect(error && violationsOf(error, input)).toEqual([
      { path: 'a', code: 'invalid_type', message: 'Required' },
      { path: 'b', code: 'invalid_type', message: 'Expected string, received null' },
    ]);
  });

  it.each<[z.ZodType, unknown, string]>([
    [z.string().min(1), '', 'Expected at least 1 character'],
    [z.string().max(2), 'abc', 'Expected at most 2 characters'],
    [z.array(z.string()).min(1), [], 'Expected at least 1 item'],
    [z.array(z.string()).max(2), ['', '', ''], 'Expected at most 2 items'],
    [z.number().min(1), 0, 'Expected at least 1'],
    [z.number().max(1), 2, 'Expected at most 1'],
    [z.number().positive(), 0, 'Expected more than 0'],
    [z.number().lt(1), 1, 'Expected less than 1'],
    [z.number().multipleOf(3), 1, 'Expected a multiple of 3'],
    [z.int(), 1.5, 'Expected a whole number'],
    [z.email(), 'x', 'Expected an email address'],
    [z.string().regex(/a/), 'x', 'Does not have the expected form'],
    [z.string().refine(() => false), 'x', 'Is not valid'],
    [z.literal('a'), 'x', 'Expected "a"'],
    [z.enum(['text', 'textarea']), 'x', 'Expected one of "text", "textarea"'],
    [
      z.enum(['text', 'textarea']),
      'text-area',
      'Expected one of "text", "textarea". Did you mean `textarea`?',
    ],
    [z.union([z.string(), z.number(), z.array(z.string())]), true, 'Expected string, number or array'],
    [z.discriminatedUnion('at', [z.object({ at: z.literal('email') })]), { at: 'mail' }, 'Expected "email"'],
  ])('says what is expected in plain words: %#', (schema, input, message) => {
    const { error } = schema.safeParse(input);

    expect(error && violationsOf(error, input).map((violation) => violation.message)).toEqual([message]);
  });

  it('says nothing of the bounds of what is of another type', () => {
    const schema = z.object({ to: z.array(z.string()).max(5), name: z.string().max(1) });
    const input = { to: 'a@example.com', name: ['a', 'b'] };
    const { error } = schema.safeParse(input);

    expect(error && violationsOf(error, input).map(({ path, code }) => `${path} ${code}`)).toEqual([
      'to invalid_type',
      'name invalid_type',
    ]);
  });

  it('suggests the property that an unknown one may mean, for the first ten of them', () => {
    const schema = z.strictObject({ label: z.string().optional() });
    const lines = (input: object) => {
      const { error } = schema.safeParse(input);
      return error ? violationsOf(error, input).map(({ message }) => message) : [];
    };
    const many = Object.fromEntries(Array.from('abcdefghijk', (letter) => [`label${letter}`, 1]));

    expect(lines({ lable: 'x', 'a\nb': 1 })).toEqual([
      'Unknown property `lable`. Did you mean `label`?',
      'Unknown property `a\\nb`',
    ]);
    expect(lines(many).slice(9)).toEqual([
      'Unknown property `labelj`. Did you mean `label`?',
      'Unknown property `labelk`',
    ]);
  });

  it('names each unknown property by itself, below the root', () => {
    expect(codes(z.strictObject({ a: z.strictObject({}) }), { a: { x: 1, y: 2 }, z: 3 }, 'body')).toEqual([
      'body.a.x unrecognized_keys',
      'body.a.y unrecognized_keys',
      'body.z unrecognized_keys',
    ]);
  });

  it('names all problems inside the alternative that is meant', () => {
    const byType = z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('a'), n: z.number() }),
      z.strictObject({ type: z.literal('b'), s: z.string(), t: z.string() }),
    ]);
    const byShape = z.union([
      z.strictObject({ all: z.array(z.number()) }),
      z.strictObject({ one: z.number() }),
    ]);

    expect(codes(byType, { type: 'b', s: 1, u: 1 })).toEqual([
      's invalid_type',
      't invalid_type',
      'u unrecognized_keys',
    ]);
    expect(codes(byType, { type: 'c' })).toEqual(['type invalid_enum_value']);
    expect(codes(byType, {})).toEqual(['type invalid_type']);
    expect(codes(byShape, { all: [1, 'x', 'y'] })).toEqual(['all.1 invalid_type', 'all.2 invalid_type']);
    expect(codes(byShape, { all: [], one: 1 })).toEqual([' invalid_union']);
  });
});

describe('what is wrong with a request', () => {
  it('ends at a hundred problems, by Zod and in the details of every failure', () => {
    const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`u${n}`, 1]));
    const numbers = Array.from({ length: 20_000 }, () => 1);
    const violations = numbers.map((_, n) => custom(`a.${n}`, 'Wrong'));

    expect(codes(z.strictObject({}), unknown)).toHaveLength(100);
    expect(codes(z.array(z.string()), numbers)).toHaveLength(100);
    expect(unrecognized('a', Object.keys(unknown), ['u'])).toHaveLength(100);
    const error = invalid(violations);
    expect(error.rawMessage).toBe('a.0: Wrong (and 19999 more)');
    expect(failureOf(error)?.violations).toHaveLength(100);
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations).toHaveLength(100);
  });
});

describe('pathOf', () => {
  it('joins with dots and skips what is empty', () => {
    expect(pathOf('', 'fields', 0, 'id')).toBe('fields.0.id');
  });

  it('makes keys of strangers readable', () => {
    expect(pathOf('a', '\ud800')).toBe('a.\ufffd');
    expect(pathOf('k'.repeat(100_000)).length).toBe(500);
  });
});
