import { type Violation, wrongType } from '../errors/violations.ts';
import { instantInWords } from '../text/instant.ts';
import {
  type AnswerCheck,
  type AttributesOf,
  type FieldTypeRules,
  type LineInput,
  noViolations,
  type Typed,
} from './field-type.ts';
import { boundAttributes, boundProblems } from './number.ts';
import { readText } from './text.ts';

/** The shapes of times as JSON Schema takes them; which days a month has they can't say. */
const patterns = {
  date: '^\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])$',
  time: '^(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d)?$',
  datetime:
    '^\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])T(?:[01]\\d|2[0-3]):[0-5]\\d' +
    '(?::[0-5]\\d(?:\\.\\d{1,9})?)?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)$',
};

/** A day of the calendar, `YYYY-MM-DD`, between `min` and `max`. */
export const date = rulesOf({
  input: 'date',
  pattern: patterns.date,
  isTime: isDate,
  compare: compareTexts,
  expected: 'Must be a date of the form YYYY-MM-DD',
  sample: '2030-01-31',
  format: (day, tag) => new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' }).format(day),
} satisfies TimeKind);

/** A time of day, `HH:MM` or `HH:MM:SS`, between `min` and `max`; in words it is as it is. */
export const time = rulesOf({
  input: 'time',
  pattern: patterns.time,
  isTime: (text) => timeOfDay.test(text),
  compare: (left, right) => compareTexts(withSeconds(left), withSeconds(right)),
  expected: 'Must be a time of the form HH:MM or HH:MM:SS',
  sample: '12:00',
} satisfies TimeKind);

/** An instant, ISO 8601 with offset, between `min` and `max`; in words it is in UTC, and says so. */
export const datetime = rulesOf({
  input: 'datetime-local',
  pattern: patterns.datetime,
  isTime: isDatetime,
  compare: (left, right) => Date.parse(left) - Date.parse(right),
  expected: 'Must be a date and time with offset, such as 2030-01-31T09:00:00Z',
  sample: '2030-01-31T12:00:00Z',
  format: instantInWords,
} satisfies TimeKind);

/** Whether a text is an instant: ISO 8601 with offset, seconds and their fraction optional. */
export function isDatetime(text: string): boolean {
  return instant.test(text) && isDate(text.slice(0, 10));
}

function rulesOf(kind: TimeKind): FieldTypeRules<TimeField> {
  return {
    attributes: boundAttributes,
    problems: (field, _sent, path) =>
      boundProblems(
        field,
        path,
        (bound, place) => boundRefusal(kind, bound, place),
        (min, max) => kind.compare(String(min), String(max)),
      ),
    check: (field) => checkTime(kind, field),
    answerType: () => 'string',
    jsonSchema: () => ({ type: 'string', pattern: kind.pattern }),
    sample: ({ min, max }) => min ?? max ?? kind.sample,
    inWords: (answer, _field, locale) => inWords(kind, String(answer), locale),
    readInput: (values, field, _part, typed) => withOffset(typedYear(readText(values), field, typed)),
    control: 'line',
    input: kind.input,
    kind: 'text',
  };
}

function checkTime({ isTime, compare, expected }: TimeKind, { min, max }: TimeField): AnswerCheck {
  return (answer, path) => {
    if (typeof answer !== 'string') return [wrongType(path, 'string', answer)];
    if (!isTime(answer)) return [{ path, code: 'invalid_date', message: expected }];
    if (typeof min === 'string' && compare(answer, min) < 0) {
      return [{ path, code: 'too_small', message: `Must not be before ${min}` }];
    }
    if (typeof max === 'string' && compare(answer, max) > 0) {
      return [{ path, code: 'too_big', message: `Must not be after ${max}` }];
    }
    return noViolations;
  };
}

function boundRefusal({ isTime, expected }: TimeKind, bound: string | number, path: string): Violation[] {
  if (typeof bound !== 'string') return [wrongType(path, 'string', bound)];
  return isTime(bound) ? [] : [{ path, code: 'invalid_date', message: expected }];
}

function inWords({ format }: TimeKind, text: string, locale: string): string {
  const time = new Date(text);
  return format === undefined || Number.isNaN(time.getTime()) ? text : format(time, locale);
}

/** Of a year that is typed in two digits, browsers make one of the first century: without its zeros it is no date. */
function typedYear(text: string, { min }: TimeField, typed: Typed = {}): string {
  const isMeant = typed.checksYears !== true || (typeof min === 'string' && min < '1000');
  return isMeant ? text : text.replace(/^0{1,3}(?=\d{1,3}-)/, '');
}

/** Browsers have no offset: a date with a time that they send is taken for UTC. */
function withOffset(text: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/.test(text) ? `${text}Z` : text;
}

function isDate(text: string): boolean {
  if (!day.test(text)) return false;
  const [year = 0, month = 0, dayOfMonth = 0] = text.split('-').map(Number);
  return dayOfMonth <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function withSeconds(time: string): string {
  return time.length === 5 ? `${time}:00` : time;
}

function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

const day = new RegExp(patterns.date);
const timeOfDay = new RegExp(patterns.time);
const instant = new RegExp(patterns.datetime);

/** What date, time and datetime differ in. */
type TimeKind = {
  input: LineInput;
  pattern: string;
  isTime: (text: string) => boolean;
  /** Below, at or above zero, as the first of two valid texts is earlier or later. */
  compare: (left: string, right: string) => number;
  /** Said of a text that is no such time. */
  expected: string;
  sample: string;
  /** Writes it out. */
  format?: (time: Date, locale: string) => string;
};

type TimeField = AttributesOf<typeof boundAttributes>;
