import type { Violation } from '../errors/violations.ts';
import { DEFAULT_MAX_LENGTH } from '../fields/text.ts';
import { isObject } from '../json/json.ts';
import { MAX_KEYLESS_BYTES, MAX_MESSAGE_BYTES } from '../limits/message-limits.ts';
import { costOf, parsePattern } from '../patterns/matcher.ts';
import { type Pattern, readPattern } from '../patterns/pattern.ts';

/**
 * Returns what is wrong with the patterns of a form's fields, as they were sent, by the index of the field.
 *
 * Patterns are matched in time linear in the text, but also in the size of the pattern's program, and a repeat
 * count of a few characters makes that large. So there are bounds on what the patterns of a form take together,
 * at worst; where they are passed, the most expensive patterns are refused. Nothing is compiled before that is known.
 */
export function patternProblems(
  fields: readonly unknown[],
  { keyless }: { keyless: boolean },
): Map<number, Violation> {
  const problems = new Map<number, Violation>();
  const patterned = fields.flatMap(readField);
  const refuse = (field: PatternField, message: string) =>
    problems.set(field.index, {
      path: `fields.${field.index}.pattern`,
      code: 'invalid_string',
      message,
    });
  const accepted = () => patterned.filter(({ index }) => !problems.has(index));

  for (const field of tooManyToSetUp(patterned)) refuse(field, setupMessage(field));
  for (const field of accepted()) {
    const fault = syntaxFault(field.pattern);
    if (fault !== undefined) refuse(field, `Unsupported pattern: ${fault}`);
  }
  const longest = keyless ? MAX_KEYLESS_BYTES : MAX_MESSAGE_BYTES;
  for (const field of tooManyToMatch(accepted(), longest)) refuse(field, matchMessage(field, longest));
  for (const { index } of tooManyDefaults(accepted())) {
    const message = 'Checking it takes too long: shorten it, or simplify the pattern';
    problems.set(index, { path: `fields.${index}.defaultValue`, code: 'custom', message });
  }
  return problems;
}

/** The schema refuses longer patterns. */
function readField(input: unknown, index: number): PatternField[] {
  const { pattern, maxLength, defaultValue } = isObject(input) ? input : {};
  if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN_LENGTH) return [];
  return [
    {
      index,
      pattern: readPattern(pattern),
      maxLength: typeof maxLength === 'number' ? Math.max(0, maxLength) : DEFAULT_MAX_LENGTH,
      defaultValue: typeof defaultValue === 'string' ? defaultValue : undefined,
    },
  ];
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

function tooManyToMatch(fields: readonly PatternField[], longest: number): PatternField[] {
  const cost = (field: PatternField) => field.pattern.size * Math.min(field.maxLength, longest);
  const rest = fields.toSorted((one, other) => cost(other) - cost(one));
  const refused: PatternField[] = [];
  while (worstCase(rest, longest) > MAX_MATCH_STEPS) refused.push(...rest.splice(0, 1));
  return refused;
}

/** What the texts of one request take at most: as much as fits goes to the largest programs. */
function worstCase(fields: readonly PatternField[], longest: number): number {
  let room = longest;
  let steps = 0;
  for (const { pattern, maxLength } of fields.toSorted(
    (one, other) => other.pattern.size - one.pattern.size,
  )) {
    const length = Math.min(maxLength, room);
    steps += pattern.size * length;
    room -= length;
  }
  return steps;
}

function tooManyDefaults(fields: readonly PatternField[]): PatternField[] {
  let room = MAX_DEFAULT_STEPS;
  return fields.filter(({ pattern, maxLength, defaultValue }) => {
    if (defaultValue === undefined || defaultValue.length > 2 * maxLength) return false;
    room -= pattern.setup + costOf(pattern, defaultValue);
    return room < 0;
  });
}

function setupMessage({ pattern }: PatternField): string {
  return (
    `Takes ${words(pattern.setup)} steps to compile, and the patterns of a form may take ` +
    `${words(MAX_SETUP_STEPS)} together: use smaller repeat counts, fewer classes such as \\pL, no (?i)`
  );
}

function matchMessage({ pattern, maxLength }: PatternField, longest: number): string {
  const characters = Math.min(maxLength, longest);
  return (
    `Takes up to ${words(pattern.size * characters)} steps to match (${words(pattern.size)} instructions over ` +
    `${words(characters)} characters), and the patterns of a form may take ${words(MAX_MATCH_STEPS)} together: ` +
    'lower maxLength, or use smaller repeat counts'
  );
}

function words(count: number): string {
  return Math.min(count, Number.MAX_SAFE_INTEGER).toLocaleString('en');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** The schema refuses longer ones. */
const MAX_PATTERN_LENGTH = 256;

/**
 * In steps of 10 to 40 ns: half a second to two, which run in a worker thread. Five fields of
 * `(?:[\p{L}' -]{1,100}\s*){1,5}` over 10,000 characters stay below it.
 */
const MAX_MATCH_STEPS = 60_000_000;

/** 50 ms. Reading the patterns, a fifth of it, blocks the process while a form is checked. */
const MAX_SETUP_STEPS = 5_000_000;

/** The defaults of a form are checked together with it, which blocks the process: 20 ms. */
const MAX_DEFAULT_STEPS = 2_000_000;

type PatternField = {
  index: number;
  pattern: Pattern;
  /** In characters. */
  maxLength: number;
  defaultValue: string | undefined;
};
