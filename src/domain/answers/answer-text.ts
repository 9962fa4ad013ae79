import { RE2JS } from 're2js';
import type { Field } from '../definition/field.ts';
import { isEmailAddress } from '../email-address.ts';
import { textProblem } from '../text.ts';
import type { Violation } from '../violations.ts';
import { type AnswerCheck, wrongType } from './answer-check.ts';

/** Text: its length in characters (code points, as JSON Schema counts) and its pattern. */
export function textCheck(field: Field): AnswerCheck {
  const { minLength = 0, maxLength = DEFAULT_MAX_LENGTH } = field;
  const pattern = field.pattern === undefined ? undefined : compilePattern(field.pattern);
  const mismatch = field.patternMessage ?? 'Does not have the expected form';
  return (answer, path, violations) => {
    if (typeof answer !== 'string') {
      violations.push(wrongType(path, 'string', answer));
      return;
    }
    const problem = textProblem(answer);
    if (problem !== undefined) {
      violations.push({ path, code: 'invalid_string', message: problem });
      return;
    }
    if (answer.length > maxLength && lengthOf(answer) > maxLength) {
      violations.push({ path, code: 'too_big', message: `Must have at most ${characters(maxLength)}` });
      return;
    }
    if (minLength > 0 && lengthOf(answer) < minLength) {
      violations.push({ path, code: 'too_small', message: `Must have at least ${characters(minLength)}` });
    }
    if (pattern !== undefined && !pattern.testExact(answer)) {
      violations.push({ path, code: 'invalid_string', message: mismatch });
    }
  };
}

/** Text that is one plain e-mail address. */
export function emailCheck(field: Field): AnswerCheck {
  return andAlso(textCheck(field), isEmailAddress, 'Must be an e-mail address');
}

/** Text that is an absolute http or https URL. */
export function urlCheck(field: Field): AnswerCheck {
  return andAlso(textCheck(field), isWebUrl, 'Must be a web address that starts with http:// or https://');
}

/** Text that can be dialled: 3 to 20 digits, in the groups that people write. */
export function phoneCheck(field: Field): AnswerCheck {
  return andAlso(textCheck(field), isPhone, 'Must be a telephone number');
}

/**
 * Compiles a field's pattern (RE2 syntax), matched in time linear in the text.
 * Throws an error that says what is unsupported.
 */
export function compilePattern(pattern: string): RE2JS {
  return RE2JS.compile(pattern);
}

/** Without `maxLength`: enough for an essay, too little to fill a disk. */
export const DEFAULT_MAX_LENGTH = 10_000;

/** The shapes behind `url` and `phone`, as JSON Schema and HTML take them. */
export const urlPattern = '^[hH][tT][tT][pP][sS]?://[^\\s\\/?#]\\S*$';
export const phonePattern = '^(?=(?:[^0-9]*[0-9]){3,20}[^0-9]*$)\\+?[0-9\\(\\) .\\/\\-]+$';

function andAlso(check: AnswerCheck, test: (text: string) => boolean, message: string): AnswerCheck {
  return (answer, path, violations) => {
    const before = violations.length;
    check(answer, path, violations);
    if (violations.length === before && typeof answer === 'string' && !test(answer)) {
      violations.push({ path, code: 'invalid_string', message } satisfies Violation);
    }
  };
}

function isWebUrl(text: string): boolean {
  return webUrl.test(text) && URL.canParse(text);
}

function isPhone(text: string): boolean {
  return text.length <= MAX_PHONE_LENGTH && phone.test(text);
}

function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

function characters(count: number): string {
  return count === 1 ? '1 character' : `${count} characters`;
}

const webUrl = new RegExp(urlPattern);
const phone = new RegExp(phonePattern);

/** Room for 20 digits and their separators. */
export const MAX_PHONE_LENGTH = 40;
