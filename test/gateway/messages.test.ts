import { expect, it } from 'vitest';
import { z } from 'zod';
import { definitionSchema } from '../../src/domain/definition/definition.ts';
import { violationsOf } from '../../src/domain/errors/violations.ts';
import { routes } from '../../src/gateway/router.ts';

it('answers bad input to any schema in words of its own, not in those of Zod', () => {
  const inputs = routes.flatMap(({ operation: { body, query, headers = {} } }) =>
    [body, query, ...Object.values(headers)].filter((schema) => schema !== undefined),
  );
  const schemas = schemasIn([definitionSchema, ...inputs]);

  const messages = new Set(
    schemas.flatMap((schema) => badInputs.flatMap((input) => messagesOf(schema, input))),
  );

  expect(schemas.length).toBeGreaterThan(100);
  expect(messages).toContain('Expected at least 1 character');
  expect(messages).toContain('Expected at most 5 items');
  expect([...messages].filter((message) => notOurs.test(message))).toEqual([]);
});

/** How Zod begins its sentences, and what slips in where a message is put together from nothing. */
const notOurs =
  /^(too (small|big)|invalid|unrecognized|input)\b|expected \w+ to (have|be)|undefined|\[object/i;

const badInputs: unknown[] = [
  undefined,
  null,
  true,
  0,
  -1,
  0.5,
  1e9,
  1e300,
  '',
  'x',
  ' ',
  'x'.repeat(200_000),
  [],
  ['x'],
  [{}],
  Array.from({ length: 1001 }, () => 'x'),
  {},
  { lable: 'x', name: 1, fields: 'x', type: 'x', all: 'x', op: 'x' },
  { type: 'email', to: 'x' },
  { type: 'webhook' },
  { not: { field: 1 } },
];

function messagesOf(schema: z.ZodType, input: unknown): string[] {
  const { error } = schema.safeParse(input);
  return error ? violationsOf(error, input).map(({ message }) => message) : [];
}

/** The schemas and all that they are made of. */
function schemasIn(roots: z.ZodType[]): z.ZodType[] {
  const found = new Set<unknown>();
  const visit = (part: unknown): void => {
    if (typeof part !== 'object' || part === null || found.has(part)) return;
    found.add(part);
    if (part instanceof z.ZodLazy) visit(part.unwrap());
    for (const [name, inner] of Object.entries(part instanceof z.ZodType ? part.def : part)) {
      // Checks and transformations are made as schemas, but run only behind the schema that they belong to.
      if (name !== 'checks' && !(inner instanceof z.ZodTransform)) visit(inner);
    }
  };
  visit(roots);
  return [...found].filter((part) => part instanceof z.ZodType);
}
