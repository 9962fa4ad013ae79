import { z } from 'zod';
import { type Condition, conditionOps } from './condition.ts';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const comparison = z
  .strictObject({
    field: z.string().min(1).max(64).describe('The id of an earlier field.'),
    op: z.enum(conditionOps).describe('How to compare.'),
    value: z
      .union([z.string(), z.number(), z.boolean(), z.null(), z.array(scalar).max(500)])
      .exactOptional()
      .describe('What to compare with; a list for `in` and `nin`, absent for `empty` and `notEmpty`.'),
  })
  .describe('Compares the answer of one earlier field.');

const condition = z.lazy(() => conditionSchema);

/** The shape of a condition; how deep, how many and which fields is for the definition's rules. */
export const conditionSchema: z.ZodType<Condition> = z
  .union(
    [
      comparison,
      z.strictObject({ all: z.array(condition).min(1).max(100) }),
      z.strictObject({ any: z.array(condition).min(1).max(100) }),
      z.strictObject({ not: condition }),
    ],
    { error: 'Expected {field, op, value}, {all: […]}, {any: […]} or {not: …}' },
  )
  .meta({ id: 'Condition', description: 'A condition on the answers to earlier fields.' });
