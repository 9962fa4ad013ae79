import { z } from 'zod';
import type { Violation } from '../errors/violations.ts';
import type { AttributesOf } from './field-type.ts';

const bound = z.union([z.number(), z.string().max(64)], { error: 'Expected a number or a date as text' });

/** The least and the greatest answer, of numbers and of times. */
export const boundAttributes = {
  min: bound
    .exactOptional()
    .describe('The least number, or the earliest date, time or datetime as text; of a scale 0 or 1.'),
  max: bound
    .exactOptional()
    .describe(
      'The greatest number, or the latest date, time or datetime as text; of a rating or a scale at most 10.',
    ),
};

/**
 * What is wrong with the bounds of a field. `problemWith` judges one bound by itself; two good ones are
 * compared by `compare`, whose result is above zero if the first is greater.
 */
export function boundProblems<Bound extends string | number>(
  { min, max }: AttributesOf<typeof boundAttributes>,
  path: string,
  isBound: (bound: string | number, path: string, problems: Violation[]) => bound is Bound,
  compare: (left: Bound, right: Bound) => number,
): Violation[] {
  const problems: Violation[] = [];
  const least = min !== undefined && isBound(min, `${path}.min`, problems) ? min : undefined;
  const greatest = max !== undefined && isBound(max, `${path}.max`, problems) ? max : undefined;
  if (least !== undefined && greatest !== undefined && compare(least, greatest) > 0) {
    problems.push({ path: `${path}.max`, code: 'custom', message: 'max must not be below min' });
  }
  return problems;
}
