import { compilePattern, DEFAULT_MAX_LENGTH } from '../answers/answer-text.ts';
import { isObject } from '../json.ts';
import type { Violation } from '../violations.ts';

/**
 * What is wrong with the patterns of a form's fields, as they were sent.
 *
 * RE2 takes time linear in the text, but also linear in the size of the pattern's program, and a
 * repeat count of a few characters makes that large. So a pattern has to fit the longest text it
 * may meet, and all patterns of a form together have a size; what is beyond it isn't even compiled.
 */
export function patternProblems(fields: readonly unknown[]): Violation[] {
  let room = MAX_FORM_SIZE;
  return fields.flatMap((field, index) => {
    const { pattern, maxLength } = isObject(field) ? field : {};
    if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN_LENGTH) return [];
    const longest = typeof maxLength === 'number' ? maxLength : DEFAULT_MAX_LENGTH;
    const size = room > 0 ? programSize(pattern) : Number.POSITIVE_INFINITY;
    if (typeof size === 'number') room -= size;
    const message = typeof size === 'string' ? size : tooComplex(size * longest, room);
    return message === undefined
      ? []
      : [{ path: `fields.${index}.pattern`, code: 'invalid_string', message }];
  });
}

/** The size of a pattern's program, or what is unsupported in the pattern. */
function programSize(pattern: string): number | string {
  try {
    return compilePattern(pattern).programSize();
  } catch (error) {
    return `Unsupported pattern: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function tooComplex(cost: number, room: number): string | undefined {
  if (room < 0) return 'The patterns of the form are too complex: use smaller repeat counts';
  return cost > MAX_COST ? 'Too complex a pattern for such long texts: lower maxLength' : undefined;
}

/** Longer ones are refused by the shape. */
const MAX_PATTERN_LENGTH = 256;

/** `[a-z0-9-]{1,200}` is of size 400. A hundred fields with everyday patterns stay below it. */
const MAX_FORM_SIZE = 20_000;

/** Program size by characters: a pattern of size 500 over 10,000 characters, a quarter second at worst. */
const MAX_COST = 5_000_000;
