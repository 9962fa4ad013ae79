import type { DescEnum } from '@bufbuild/protobuf';
import { type Duration, type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { asciiAddress } from '../domain/addresses/ascii-address.ts';
import { isEmailAddress } from '../domain/addresses/email-address.ts';
import { enumName } from '../domain/enums.ts';
import { failed, invalid, notFound } from '../domain/errors/failure.ts';
import { oneOfEnum, required, type Violation } from '../domain/errors/violations.ts';
import { type IdPrefix, isId } from '../domain/ids.ts';
import { textProblem } from '../domain/json/json-problems.ts';
import { browserLength, instants, MAX_FILTER_LENGTH, pageSizes } from '../domain/limits/limits.ts';
import { hashSecret } from '../domain/secrets/new-secrets.ts';
import type { PageRequest } from '../store/database/queries.ts';

/**
 * Which page a list request asks for. Page tokens are ids with `prefix`; `unset` is the size of a page if the
 * request names none.
 *
 * Throws BAD_REQUEST, with a violation at the field, for a negative size and for a token that no list gave.
 */
export function pageRequestOf(
  { pageSize, pageToken }: ListRequest,
  prefix: IdPrefix | 'sess',
  unset: number = pageSizes.default,
): PageRequest {
  if (pageSize < 0) throw badParameter('page_size', 'too_small', 'Expected at least 1');
  if (pageToken !== '' && !isId(prefix, pageToken)) throw unknownCursor();
  return {
    limit: pageSize === 0 ? unset : Math.min(pageSize, pageSizes.max),
    cursor: pageToken === '' ? undefined : pageToken,
  };
}

/** What `find` finds by an id. A text that is no such id is not looked up. Throws NOT_FOUND. */
export async function requireFound<T>(
  prefix: keyof typeof names,
  id: string,
  find: () => Promise<T | null>,
): Promise<T> {
  const found = isId(prefix, id) ? await find() : null;
  if (found === null) throw notFound(names[prefix]);
  return found;
}

/** What ids with a prefix name. */
const names = {
  form: 'form',
  key: 'key',
  sub: 'submission',
  sess: 'session',
  wh: 'webhook',
  dlv: 'delivery',
  upl: 'upload',
};

/** One plain email address as it is stored. Throws INVALID at `email` for any other text. */
export function requireEmail(text: string, path = 'email'): string {
  const problems = text === '' ? [required(path)] : emailProblems(text, path);
  if (problems.length > 0) throw invalid(problems);
  return asciiAddress(text);
}

/** What is wrong with a text that has to be one plain email address. */
export function emailProblems(text: string, path: string): Violation[] {
  const message = 'Expected an email address';
  return isEmailAddress(asciiAddress(text)) ? [] : [{ path, code: 'invalid_string', message }];
}

/** The failure of a request with a field beside its content that can't be used. `path` is the field's name. */
/** Refuses the place that a list is to begin at. */
export function unknownCursor() {
  return badParameter('page_token', 'invalid_string', 'Expected a cursor that a list has given');
}

export function badParameter(path: string, code: Violation['code'], message: string) {
  return failed(Reason.BAD_REQUEST, `${path}: ${message}`, { violations: [{ path, code, message }] });
}

/** What a list is asked for by a value of an enum; undefined: all. Throws for one that this version does not know. */
export function askedName<E extends Parameters<typeof enumName>[0]>(
  values: E,
  value: E[keyof E],
  path: string,
  choices: DescEnum,
) {
  const name = enumName(values, value);
  if (name !== undefined || value === values.UNSPECIFIED) return name;
  throw unknownValue(path, choices);
}

/**
 * The failure of a field that has none of the values of its enum that the call takes: all of them, or those `taken`.
 */
export function unknownValue(path: string, choices: DescEnum, taken?: readonly number[]) {
  return badParameter(path, 'invalid_enum_value', oneOfEnum(choices, taken));
}

/** What is wrong with a text that callers choose. An empty one is none: only one that is `needed` lacks. */
export function textProblems(
  text: string,
  path: string,
  { min = 0, max, needed = false, code = 'custom' }: TextRules,
): Violation[] {
  if (text === '') return needed ? [required(path)] : [];
  const message = textProblem(text);
  if (message !== undefined) return [{ path, code, message }];
  if (text.length < min) return [{ path, code: 'too_small', message: `Expected at least ${min} characters` }];
  if (text.length <= max) return [];
  return [{ path, code: 'too_big', message: `Expected at most ${max} characters` }];
}

/** Throws BAD_REQUEST for a text that nothing can have that is listed by it. */
export function refuseUnfitFilter(text: string, path: string): void {
  const [problem] = textProblems(text, path, { max: MAX_FILTER_LENGTH });
  if (problem !== undefined) throw badParameter(path, problem.code, problem.message);
}

/**
 * The instant of a request. PostgreSQL and `Date` hold other ranges: what is beyond both reads as the years 1 and
 * 9999.
 */
export function dateOfTimestamp(time: Timestamp): Date {
  return new Date(Math.min(Math.max(timestampMs(time), instants.firstMs), instants.lastMs));
}

/** What is wrong with a duration: it must be whole seconds from `min` to `max`. None is right. */
export function secondsProblems(
  duration: Duration | undefined,
  path: string,
  { min, max }: { min: number; max: number },
): Violation[] {
  if (duration === undefined) return [];
  const { seconds, nanos } = duration;
  if (nanos !== 0) return [{ path, code: 'invalid_type', message: 'Expected whole seconds' }];
  if (seconds < min) return [{ path, code: 'too_small', message: `Expected at least ${inSeconds(min)}` }];
  if (seconds > max) return [{ path, code: 'too_big', message: `Expected at most ${inSeconds(max)}` }];
  return [];
}

function inSeconds(count: number): string {
  return count === 1 ? '1 second' : `${count} seconds`;
}

/** How many characters, and the code of what can't be stored. */
type TextRules = { min?: number; max: number; needed?: boolean; code?: Violation['code'] };

type ListRequest = { pageSize: number; pageToken: string };

/** The digest of what only one browser has, so that a link works there alone; null if it named none. */
export function browserHashOf(browser: string): string | null {
  return browser === '' || browser.length > browserLength.max ? null : hashSecret(browser);
}
