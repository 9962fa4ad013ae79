import type { DescEnum } from '@bufbuild/protobuf';
import { z } from 'zod';
import { isObject, isScalar } from '../json/json.ts';
import { MAX_PROBLEMS } from '../limits/limits.ts';
import { kindNamed, messageOf, oneOf, unknownProperties } from './zod-messages.ts';

/** The documented detail codes: the vocabulary of Zod 3. */
export const violationCodes = [
  'invalid_type',
  'invalid_string',
  'too_small',
  'too_big',
  'invalid_enum_value',
  'unrecognized_keys',
  'invalid_date',
  'not_multiple_of',
  'invalid_union',
  'custom',
] as const;

// Holds for every schema, wherever it is parsed.
z.config({ customError: messageOf });

/**
 * Translates what Zod 4 found into the documented details, every problem at once, a hundred at most.
 *
 * `input` is the value that was parsed; `root` is put before each path. A missing value reads
 * "Required"; each unknown property is a violation of its own whose path is that property. What a
 * rule of our own (`refine`) refuses is `invalid_string` for a text and `custom` for the rest, if the
 * rule names no other documented code in its `params.code`.
 */
export function violationsOf(error: z.ZodError, input: unknown, root = ''): Violation[] {
  return atMost(atMost(withoutFollowUps(error.issues)).flatMap((issue) => translate(issue, input, root)));
}

/**
 * Joins the parts of a dotted path; empty parts leave no dot.
 *
 * Parts may be keys that a caller made up, so they are made well-formed and cut to a readable length.
 */
export function pathOf(...parts: PropertyKey[]): string {
  return parts
    .map((part) => shown(String(part)))
    .filter((part) => part !== '')
    .join('.');
}

/** The id of the field that a violation of answers is about: `email` of `answers.email`, `cv` of `answers.cv.0`. */
export function fieldIdOf(path: string): string {
  return path.split('.')[1] ?? '';
}

/** The message for a number that is none of an enum's, or of those of its values that a call takes. */
export function oneOfEnum({ values }: DescEnum, taken?: readonly number[]): string {
  const names = values.filter(({ number }) => (taken === undefined ? number !== 0 : taken.includes(number)));
  return `Expected one of ${names.map(({ name }) => name).join(', ')}`;
}

/** A list of violations in one line: the first one at its place, and how many more there are. */
export function summarize(violations: readonly Summarized[]): string {
  const [first] = violations;
  const place = first === undefined || first.path === '' ? '' : `${first.path}: `;
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : '';
  return `${place}${first?.message ?? 'The request is not valid'}${more}`;
}

/** The first hundred of what is wrong: more help nobody, and the reply would be larger than the request. */
export function atMost<T>(problems: readonly T[]): T[] {
  return problems.slice(0, MAX_PROBLEMS);
}

/**
 * Leaves out problems with the length of a value that is of the wrong type: Zod compares the length of a text with
 * the bounds of the list that it should have been.
 */
function withoutFollowUps(issues: readonly Issue[]): Issue[] {
  const mistyped = new Set(
    issues.filter(({ code }) => code === 'invalid_type').map(({ path }) => pathOf(...path)),
  );
  return issues.filter(
    ({ code, path }) => (code !== 'too_small' && code !== 'too_big') || !mistyped.has(pathOf(...path)),
  );
}

function translate(issue: Issue, input: unknown, root: string): Violation[] {
  const path = pathOf(root, ...issue.path);
  switch (issue.code) {
    case 'unrecognized_keys':
      return unrecognizedAt(path, issue.keys, issue.message.split('\n'));
    case 'invalid_union':
      return translateUnion(issue, input, root);
    case 'invalid_key':
    case 'invalid_element':
      return [custom(path, issue.message)];
    case 'invalid_type':
      return [invalidType(path, issue, valueAt(input, issue.path))];
    case 'invalid_value':
      if (valueAt(input, issue.path) === undefined) return [required(path)];
      return [{ path, code: 'invalid_enum_value', message: issue.message }];
    case 'invalid_format': {
      const code = dateFormats.has(issue.format) ? 'invalid_date' : 'invalid_string';
      return [{ path, code, message: issue.message }];
    }
    case 'custom':
      return [{ path, code: customCode(issue, valueAt(input, issue.path)), message: issue.message }];
    case 'too_small':
    case 'too_big':
    case 'not_multiple_of':
      return [{ path, code: issue.code, message: issue.message }];
    default:
      return issue satisfies never;
  }
}

/** The unknown properties of the object at `path`; `known` are those that may have been meant. */
export function unrecognized(path: string, keys: readonly string[], known: Iterable<string>): Violation[] {
  const named = atMost(keys);
  return unrecognizedAt(path, named, unknownProperties(named, known));
}

function unrecognizedAt(path: string, keys: readonly string[], messages: readonly string[]): Violation[] {
  return atMost(keys).map((key, index) => ({
    path: pathOf(path, key),
    code: 'unrecognized_keys',
    message: messages[index] ?? '',
  }));
}

/** A value of another JSON type than it must be. */
export function wrongType(path: string, expected: string, value: unknown): Violation {
  return { path, code: 'invalid_type', message: `Expected ${expected}, received ${kindOf(value)}` };
}

/** A value that breaks a rule of our own. */
export function custom(path: string, message: string): Violation {
  return { path, code: 'custom', message };
}

/** A value that is missing and must be there. */
export function required(path: string): Violation {
  return { path, code: 'invalid_type', message: 'Required' };
}

/** An answer that only a person may give, and that came, or is missing, without one. */
export function answeredByPerson(path: string): Violation {
  return { ...custom(path, 'This field must be answered by a person'), byPerson: true };
}

/**
 * A union names the problems of the alternative that was meant. With a discriminator Zod has
 * chosen already, or points at the discriminator; else it is the only alternative that knows all
 * properties of the input.
 */
function translateUnion(issue: UnionIssue, input: unknown, root: string): Violation[] {
  const path = pathOf(root, ...issue.path);
  if (valueAt(input, issue.path) === undefined) return [required(path)];
  if (issue.discriminator !== undefined) {
    const options = 'options' in issue ? (issue.options ?? []) : [];
    const message = oneOf(options, valueAt(input, issue.path));
    return [{ path, code: 'invalid_enum_value', message }];
  }
  const meant = issue.errors.filter((problems) => problems.every((problem) => !isForeign(problem)));
  const [only] = meant;
  if (only === undefined || meant.length > 1)
    return [{ path, code: 'invalid_union', message: issue.message }];
  return withoutFollowUps(only).flatMap((problem) =>
    translate({ ...problem, path: [...issue.path, ...problem.path] }, input, root),
  );
}

function isForeign(problem: Issue): boolean {
  return (
    problem.path.length === 0 && (problem.code === 'unrecognized_keys' || problem.code === 'invalid_type')
  );
}

function invalidType(path: string, issue: { expected: string }, value: unknown): Violation {
  if (value === undefined) return required(path);
  // A fraction is of the right JSON type.
  if (issue.expected === 'int') return { path, code: 'invalid_type', message: 'Expected a whole number' };
  return wrongType(path, kindNamed(issue.expected), value);
}

/** The name of a value's JSON type, as messages use it; for a number that JSON does not have, the value. */
export function kindOf(value: unknown): string {
  if (value === null || (typeof value === 'number' && !Number.isFinite(value))) return String(value);
  return Array.isArray(value) ? 'array' : typeof value;
}

/** What is at a path of JSON; undefined if there is nothing. */
export function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

/** What a rule of our own refuses: the code it names, `invalid_string` for a text, else `custom`. */
function customCode(issue: CustomIssue, value: unknown): ViolationCode {
  const named = violationCodes.find((code) => code === issue.params?.code);
  return named ?? (typeof value === 'string' ? 'invalid_string' : 'custom');
}

function shown(key: string): string {
  return key.slice(0, MAX_SHOWN_KEY).toWellFormed();
}

/** A path can itself be a part: the longest dotted path that a definition makes. */
const MAX_SHOWN_KEY = 500;

const dateFormats = new Set(['date', 'time', 'datetime']);

/**
 * What is wrong with one place of an input. `path` is dotted from the body's root: `fields.0.id`. `received` is what
 * came, as `describeReceived` has it; `byPerson`: only a person can correct it.
 */
export type Violation = {
  path: string;
  code: ViolationCode;
  message: string;
  received?: string;
  byPerson?: true;
};

type Summarized = Pick<Violation, 'path' | 'message'>;

type ViolationCode = (typeof violationCodes)[number];

type Issue = z.core.$ZodIssue;
type CustomIssue = Extract<Issue, { code: 'custom' }>;
type UnionIssue = Extract<Issue, { code: 'invalid_union' }>;

/** The violations with what came at their paths in `input`, which are dotted. */
export function withReceived<V extends Located>(violations: readonly V[], input: unknown): V[] {
  return violations.map((violation) => {
    if (violation.received !== undefined) return violation;
    const received = describeReceived(violation.path, valueAt(input, partsOf(violation.path)));
    return received === '' ? violation : { ...violation, received };
  });
}

/**
 * Tells the sender of a value what came: a scalar as JSON, cut to a readable length. Of lists and objects, and of what
 * may be a secret by its path or its looks, it tells the type alone. Empty if nothing came.
 */
export function describeReceived(path: string, value: unknown): string {
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (isObject(value)) return 'object';
  if (typeof value !== 'string') return isScalar(value) ? String(value) : '';
  const isSecret = secretName.test(nameIn(path)) || secretText.test(value.slice(0, MAX_SEARCHED));
  if (path === '' || isSecret) return kindOf(value);
  if (value.length <= MAX_SHOWN) return JSON.stringify(value.toWellFormed());
  const start = JSON.stringify(value.slice(0, MAX_SHOWN).toWellFormed()).slice(0, -1);
  return `${start}…" (string of ${value.length} characters)`;
}

function partsOf(path: string): string[] {
  return path === '' ? [] : path.split('.');
}

/** The name of what is at a path: `scopes[0]` and `answers.token.0` are named by their lists. */
function nameIn(path: string): string {
  return path.split(/[.[\]]/).findLast((part) => !/^\d*$/.test(part)) ?? '';
}

/** Fields of forms can be called so, too. */
const secretName =
  /secret|token|passw|passphrase|pin$|api.?key|authori[sz]ation|credential|session.?id|cvc|cvv/i;

/** Keys of this service and its sessions, signing secrets, and addresses with a password. */
const secretText = /\b(?:hfs|sess|whsec)_|^[a-z][a-z0-9+.-]*:\/*[^/?#]*@/i;

/** Of a text, in characters. */
const MAX_SHOWN = 60;

/** Longer than the part of an address that has a password. */
const MAX_SEARCHED = 2_048;

type Located = Pick<Violation, 'path' | 'received'>;
