import { z } from 'zod';
import { MAX_PROBLEMS } from '../limits/limits.ts';
import { nearestName } from '../text/nearest-name.ts';

/**
 * Returns the message for a problem that Zod found, where the schema has none of its own: what was expected, with
 * the bound and its unit. Zod's own messages are for developers.
 *
 * Unknown properties have one line each.
 */
export function messageOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `Expected ${kindNamed(issue.expected)}`;
    case 'invalid_value':
      return oneOf(issue.values, issue.input);
    case 'invalid_union':
      return expectedKinds(issue.errors);
    case 'invalid_format':
      return formats.get(issue.format) ?? 'Does not have the expected form';
    case 'too_small':
      return `Expected ${issue.inclusive === false ? 'more than' : 'at least'} ${amount(issue.minimum, issue.origin)}`;
    case 'too_big':
      return `Expected ${issue.inclusive === false ? 'less than' : 'at most'} ${amount(issue.maximum, issue.origin)}`;
    case 'not_multiple_of':
      return `Expected a multiple of ${issue.divisor}`;
    case 'unrecognized_keys': {
      const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
      return unknownProperties(issue.keys.slice(0, MAX_PROBLEMS), known).join('\n');
    }
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return 'Is not valid';
    default:
      return issue satisfies never;
  }
}

/** Returns one line for each unknown property; `known` are those that may have been meant. */
export function unknownProperties(names: readonly string[], known: Iterable<string>): string[] {
  return names.map(
    (name, index) => `Unknown property ${quoted(name)}${index < MAX_HINTS ? didYouMean(name, known) : ''}`,
  );
}

/** Returns the message for a value that is none of `values`. */
export function oneOf(values: readonly unknown[], given: unknown): string {
  const names = values.filter((value) => typeof value === 'string');
  const list = values.map((value) => JSON.stringify(value)).join(', ');
  if (values.length === 1) return `Expected ${list}`;
  return `Expected one of ${list}${typeof given === 'string' ? didYouMean(given, names) : ''}`;
}

/** Returns the name that messages use for a type that a schema expects. */
export function kindNamed(expected: string): string {
  return kinds.get(expected) ?? expected;
}

function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '' : `. Did you mean ${quoted(nearest)}?`;
}

/** Puts a name in backticks. It may come from a caller, so it is cut and made one line of well-formed text. */
export function quoted(name: string, most = MAX_SHOWN): string {
  return `\`${JSON.stringify(name.slice(0, most).toWellFormed()).slice(1, -1)}\``;
}

function expectedKinds(alternatives: readonly (readonly z.core.$ZodIssue[])[]): string {
  const expected = alternatives.flatMap(([first]) =>
    first?.code === 'invalid_type' && first.path.length === 0 ? [kindNamed(first.expected)] : [],
  );
  const [last, ...others] = [...new Set(expected)].reverse();
  if (last === undefined) return 'Does not have the expected form';
  return `Expected ${others.length === 0 ? last : `${others.reverse().join(', ')} or ${last}`}`;
}

function amount(bound: number | bigint, origin: string): string {
  const unit = units.get(origin);
  if (unit === undefined) return String(bound);
  return Number(bound) === 1 ? `1 ${unit}` : `${bound} ${unit}s`;
}

const kinds = new Map([
  ['int', 'whole number'],
  ['record', 'object'],
]);

const units = new Map([
  ['string', 'character'],
  ['array', 'item'],
]);

const formats = new Map([
  ['email', 'Expected an email address'],
  ['url', 'Expected an absolute URL'],
  ['date', 'Expected a date of the form YYYY-MM-DD'],
  ['time', 'Expected a time of the form HH:MM or HH:MM:SS'],
  ['datetime', 'Expected a date and time, such as 2030-01-31T09:00:00Z'],
]);

/** A body may hold thousands of unknown properties, and comparing each with all known ones takes time. */
const MAX_HINTS = 10;

const MAX_SHOWN = 500;
