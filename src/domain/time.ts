/** Whether a text is a day of the calendar, `YYYY-MM-DD`. */
export function isDate(text: string): boolean {
  const [, year, month, day] = datePattern.exec(text) ?? [];
  return Number(day) >= 1 && Number(day) <= daysIn(Number(year), Number(month));
}

/** Whether a text is a time of day, `HH:MM` or `HH:MM:SS`. */
export function isTime(text: string): boolean {
  return timePattern.test(text);
}

/** Whether a text is an instant: ISO 8601 with offset, seconds and their fraction optional. */
export function isDatetime(text: string): boolean {
  return datetimePattern.test(text) && isDate(text.slice(0, 10));
}

/** Below, at or above zero, as the first of two valid dates, times or datetimes is earlier or later. */
export function compareTimes(type: TimeType, left: string, right: string): number {
  if (type === 'datetime') return Date.parse(left) - Date.parse(right);
  const [earlier, later] = type === 'time' ? [withSeconds(left), withSeconds(right)] : [left, right];
  if (earlier === later) return 0;
  return earlier < later ? -1 : 1;
}

/** The shapes of times as JSON Schema and HTML take them; which days a month has they can't say. */
export const timePatterns = {
  date: '^\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])$',
  time: '^(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d)?$',
  datetime:
    '^\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])T(?:[01]\\d|2[0-3]):[0-5]\\d' +
    '(?::[0-5]\\d(?:\\.\\d{1,9})?)?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)$',
};

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  if (month < 1 || month > 12) return 0;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function withSeconds(time: string): string {
  return time.length === 5 ? `${time}:00` : time;
}

const datePattern = /^(\d{4})-(\d\d)-(\d\d)$/;
const timePattern = new RegExp(timePatterns.time);
const datetimePattern = new RegExp(timePatterns.datetime);

export type TimeType = 'date' | 'time' | 'datetime';
