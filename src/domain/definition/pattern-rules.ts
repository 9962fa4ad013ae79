import type { Violation } from '../errors/violations.ts';
import { DEFAULT_MAX_LENGTH } from '../fields/text.ts';
import { isObject } from '../json/json.ts';
import { formLimits } from '../limits/limits.ts';
import {
  lengthWithin,
  MAX_MATCH_STEPS,
  type Pattern,
  parsePattern,
  readPattern,
  stepsFor,
} from '../patterns/pattern.ts';

/**
 * Returns what is wrong with the patterns of a form's fields, as they were sent, by the index of the field.
 *
 * Patterns are matched in time linear in the text, but also in the size of the pattern's program, and a repeat
 * count of a few characters makes that large. So there are bounds on what the patterns of a form take together,
 * at worst; where they are passed, the most expensive patterns are refused. Nothing is compiled before that is known.
 */
export function patternProblems(fields: readonly unknown[]): Map<number, Violation> {
  const problems = new Map<number, Violation>();
  const patterned = fields.flatMap(readField);
  const refuse = ({ index }: PatternField, message: string) =>
    problems.set(index, { path: `fields.${index}.pattern`, code: 'invalid_string', message });
  const accepted = () => patterned.filter(({ index }) => !problems.has(index));

  for (const field of tooManyToSetUp(patterned)) refuse(field, setupMessage(field));
  for (const field of accepted()) {
    const fault = syntaxFault(field.pattern);
    if (fault !== undefined) refuse(field, `Unsupported pattern: ${fault}`);
  }
  const { refused, left } = tooManyToMatch(accepted());
  for (const field of refused) refuse(field, matchMessage(field, left / refused.length));
  return problems;
}

/** The schema refuses longer patterns. */
function readField(input: unknown, index: number): PatternField[] {
  const { pattern: source, maxLength } = isObject(input) ? input : {};
  if (typeof source !== 'string' || source.length > formLimits.pattern) return [];
  const pattern = readPattern(source);
  const given = typeof maxLength === 'number' ? Math.max(0, maxLength) : DEFAULT_MAX_LENGTH;
  return [{ index, pattern, length: Math.min(given, pattern.longest) }];
}

/** A pattern that several fields have is set up once. */
function tooManyToSetUp(fields: readonly PatternField[]): PatternField[] {
  const setups = new Map(fields.map(({ pattern }) => [pattern.source, pattern.setup]));
  let total = sum([...setups.values()]);
  const refused = new Set<string>();
  for (const [source, setup] of [...setups].sort(([, one], [, other]) => other - one)) {
    if (total <= MAX_SETUP_STEPS) break;
    refused.add(source);
    total -= setup;
  }
  return fields.filter(({ pattern }) => refused.has(pattern.source));
}

function syntaxFault({ source }: Pattern): string | undefined {
  try {
    parsePattern(source);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The most expensive fields, without which the others can be matched in time, and the steps that these leave. */
function tooManyToMatch(fields: readonly PatternField[]): { refused: PatternField[]; left: number } {
  const rest = fields.toSorted((one, other) => stepsOf(other) - stepsOf(one));
  let left = MAX_MATCH_STEPS - sum(rest.map(stepsOf));
  let refused = 0;
  for (const field of rest) {
    if (left >= 0) break;
    left += stepsOf(field);
    refused += 1;
  }
  return { refused: rest.slice(0, refused), left };
}

function stepsOf({ pattern, length }: PatternField): number {
  return stepsFor(pattern, length);
}

function setupMessage({ pattern }: PatternField): string {
  return (
    `Takes ${words(pattern.setup)} steps to compile, and the patterns of a form may take ` +
    `${words(MAX_SETUP_STEPS)} together: use smaller repeat counts, fewer classes such as \\pL, no (?i)`
  );
}

/** `left` are the steps that the field can have. */
function matchMessage({ pattern, length }: PatternField, left: number): string {
  const cost =
    `Takes up to ${words(stepsFor(pattern, length))} steps to match (${words(pattern.size)} instructions over ` +
    `${words(length)} characters), and the patterns of a form may take ${words(MAX_MATCH_STEPS)} together: `;
  const largest = lengthWithin(pattern, left);
  const further = largest < 1 ? '' : `set maxLength to at most ${words(largest)}, or `;
  return `${cost}${further}use smaller repeat counts`;
}

function words(count: number): string {
  return Math.min(count, Number.MAX_SAFE_INTEGER).toLocaleString('en');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** 20 ms, after which the compiled patterns are kept. Reading the patterns, a fifth of it, is done for every check. */
const MAX_SETUP_STEPS = 2_000_000;

type PatternField = {
  index: number;
  pattern: Pattern;
  /** The most characters of a text that is matched. */
  length: number;
};
