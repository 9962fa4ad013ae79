import { z } from 'zod';
import { asciiAddress } from '../addresses/ascii-address.ts';
import {
  emailPattern,
  isEmailAddress,
  localPartPattern,
  MAX_ADDRESS_LENGTH,
} from '../addresses/email-address.ts';
import { readableAddress } from '../addresses/readable-address.ts';
import { custom, type Violation, wrongType } from '../errors/violations.ts';
import { type JsonObject, lengthOf } from '../json/json.ts';
import { textProblem } from '../json/json-problems.ts';
import { optional } from '../json/optional.ts';
import { formLimits } from '../limits/limits.ts';
import { readPattern } from '../patterns/pattern.ts';
import { foldPhone, inNfc } from '../text/typed-signs.ts';
import {
  type AnswerCheck,
  type AttributesOf,
  atLeast,
  type FieldTypeRules,
  noViolations,
} from './field-type.ts';
import { withScheme } from './web-address.ts';

/** A longer text belongs into a file. */
const MAX_LENGTH = 100_000;

/** The shapes of `url` and `phone`, as JSON Schema takes them. */
export const urlPattern = '^[hH][tT][tT][pP][sS]?://[^\\s\\/?#]\\S*$';
export const phonePattern = '^\\+?(?:[\\(\\) .\\/\\-]*[0-9]){3,20}[\\(\\) .\\/\\-]*(?:;ext=[0-9]{1,10})?$';

/** The shape of a text that `isBlank` is not, as far as every dialect of regular expressions can say it. */
export const SAYS_SOMETHING =
  '[^\\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8]';

/** Room for 20 digits and their separators, and for an extension. */
export const MAX_PHONE_LENGTH = 55;

export const textAttributes = {
  minLength: optional(z.int().min(0).max(MAX_LENGTH), 'Text: the fewest characters.'),
  maxLength: optional(z.int().min(1).max(MAX_LENGTH), 'Text: the most characters; default 10,000.'),
  pattern: optional(
    textUpTo(formLimits.pattern),
    'Text: RE2 syntax, over the whole value. The patterns of a form are limited in what they cost.',
  ),
  patternMessage: optional(textUpTo(formLimits.patternMessage), 'Text: said when `pattern` refuses.'),
};

/** The shape of a text that says something, in at most so many characters. */
export function textUpTo(max: number): z.ZodString {
  return z.string().min(1).max(max);
}

/** A line of text: its length in characters (code points, as JSON Schema counts) and its pattern. */
export const text: FieldTypeRules<TextField> = {
  attributes: textAttributes,
  defaults: ({ maxLength = DEFAULT_MAX_LENGTH }) => ({ maxLength }),
  problems: lengthProblems,
  check: checkText,
  answerType: () => 'string',
  jsonSchema: (field, needed) => textSchema(field, needed, needed ? [SAYS_SOMETHING] : []),
  sample: sampleText,
  inWords: String,
  readInput: readText,
  control: 'line',
  kind: 'text',
  needsMoreThanSpaces: true,
  toldBySchema: true,
};

/** Text of several lines. */
export const textarea: FieldTypeRules<TextField> = { ...text, control: 'textarea' };

/** Text that is one plain email address. */
export const email: FieldTypeRules<TextField> = {
  ...text,
  check: (field) => andAlso(checkText(field), isEmailAddress, 'Must be an email address'),
  jsonSchema: (field, needed) => ({
    ...textSchema(field, needed, [emailPattern, localPartPattern], MAX_ADDRESS_LENGTH),
    format: 'email',
  }),
  fold: asciiAddress,
  inWords: (answer) => readableAddress(String(answer)),
  sample: () => 'someone@example.com',
  input: 'email',
  kind: 'email',
  toldBySchema: false,
};

/** Text that is an absolute http or https URL. */
export const url: FieldTypeRules<TextField> = {
  ...text,
  check: (field) =>
    andAlso(checkText(field), isWebUrl, 'Must be a web address that starts with http:// or https://'),
  jsonSchema: (field, needed) => textSchema(field, needed, [urlPattern]),
  readInput: (values) => withScheme(readText(values)),
  fold: asciiAddress,
  inWords: (answer) => readableAddress(String(answer)),
  sample: () => 'https://example.com/',
  input: 'url',
  kind: 'url',
  toldBySchema: false,
};

/** Text that can be dialled: 3 to 20 digits, in the groups that people write, and an extension. */
export const phone: FieldTypeRules<TextField> = {
  ...text,
  check: (field) => andAlso(checkText(field), isPhone, 'Must be a telephone number'),
  jsonSchema: (field, needed) => textSchema(field, needed, [phonePattern], MAX_PHONE_LENGTH),
  fold: foldPhone,
  sample: () => '+1 555 0100',
  input: 'tel',
  kind: 'phone',
  toldBySchema: false,
};

/**
 * Reads the last of the values of an input, as of the usual pair of a hidden and a ticked one; line breaks become LF.
 */
export function readText(values: readonly string[]): string {
  return (values.at(-1) ?? '').replace(/\r\n?/g, '\n');
}

/** Some words, as long as the field wants them. */
export function sampleText({ minLength = 0, maxLength = Number.POSITIVE_INFINITY }: TextField): string {
  const words = WORDS.repeat(Math.ceil(Math.max(minLength, 1) / WORDS.length));
  return words.slice(0, Math.min(maxLength, MAX_SAMPLE));
}

/** Without `maxLength`: enough for an essay, too little to fill a disk. */
export const DEFAULT_MAX_LENGTH = 10_000;

function lengthProblems(
  { minLength, maxLength }: TextField,
  _sent: Readonly<Record<string, unknown>>,
  path: string,
): Violation[] {
  if (minLength === undefined || maxLength === undefined || minLength <= maxLength) return [];
  return [custom(`${path}.maxLength`, 'maxLength must not be below minLength')];
}

/** What is wrong with a text that may have so many characters, and that nothing else is asked of. */
export function plainTextProblems(text: string, path: string, maxLength: number): Violation[] {
  const problem = textProblem(text);
  if (problem !== undefined) return [{ path, code: 'invalid_string', message: problem }];
  if (text.length <= maxLength || lengthOf(text) <= maxLength) return [];
  return [{ path, code: 'too_big', message: `Must have at most ${characters(maxLength)}` }];
}

function checkText(field: TextField): AnswerCheck {
  const { minLength = 0, maxLength = DEFAULT_MAX_LENGTH } = field;
  const pattern = field.pattern === undefined ? undefined : readPattern(inNfc(field.pattern));
  const mismatch = field.patternMessage ?? 'Does not have the expected form';
  return (answer, path, match) => {
    if (typeof answer !== 'string') return [wrongType(path, 'string', answer)];
    const unfit = plainTextProblems(answer, path, maxLength);
    if (unfit.length > 0) return unfit;
    const isShort = minLength > 0 && lengthOf(answer) < minLength;
    const outcome = pattern === undefined ? 'matches' : match(pattern, inNfc(answer));
    if (!isShort && outcome === 'matches') return noViolations;
    const problems: Violation[] = [];
    if (isShort) {
      problems.push({ path, code: 'too_small', message: `Must have at least ${characters(minLength)}` });
    }
    if (outcome === 'differs') problems.push({ path, code: 'invalid_string', message: mismatch });
    if (outcome === 'too_long') problems.push({ path, code: 'too_big', message: 'Too long for its pattern' });
    return problems;
  };
}

function andAlso(check: AnswerCheck, test: (text: string) => boolean, message: string): AnswerCheck {
  return (answer, path, match) => {
    const problems = check(answer, path, match);
    if (problems.length > 0 || (typeof answer === 'string' && test(answer))) return problems;
    return [{ path, code: 'invalid_string', message }];
  };
}

function textSchema(field: TextField, needed: boolean, shapes: string[], longest = Infinity): JsonObject {
  const own = field.pattern === undefined ? undefined : portablePattern(field.pattern);
  const [pattern, ...others] = [...shapes, own].filter((each) => each !== undefined);
  return {
    type: 'string',
    minLength: atLeast(field.minLength, needed),
    ...(field.maxLength !== undefined && { maxLength: Math.min(field.maxLength, longest) }),
    ...(pattern !== undefined && { pattern }),
    ...(others.length > 0 && { allOf: others.map((each) => ({ pattern: each })) }),
  };
}

/** A pattern as HTML has it; undefined where browsers would refuse other texts. */
export function htmlPattern(pattern = ''): string | undefined {
  // In browsers `\s` has more characters than in RE2, and `[[`, `--` and `&&` are operations on sets.
  const differs = /^$|\\[sS]|\[[^\]]*\[|--|&&/.test(pattern);
  return differs || portablePattern(pattern, 'v') === undefined ? undefined : pattern;
}

/** A pattern over the whole text in the dialect of JSON Schema; undefined where RE2 means something else. */
function portablePattern(pattern: string, flags = 'u'): string | undefined {
  if (/\[\[:|\(\?[^:]/.test(pattern)) return undefined;
  try {
    new RegExp(pattern, flags);
    return `^(?:${pattern})$`;
  } catch {
    return undefined;
  }
}

function isWebUrl(text: string): boolean {
  return webUrl.test(text) && URL.canParse(text);
}

function isPhone(text: string): boolean {
  return text.length <= MAX_PHONE_LENGTH && dialled.test(text);
}

function characters(count: number): string {
  return count === 1 ? '1 character' : `${count} characters`;
}

const webUrl = new RegExp(urlPattern);
const dialled = new RegExp(phonePattern);

const WORDS = 'Some text. ';

/** A sample need not be a page long; a field that insists is left out. */
const MAX_SAMPLE = 1000;

type TextField = AttributesOf<typeof textAttributes>;
