import { TZDate, tzOffset } from '@date-fns/tz';

/** Gives the day of the calendar, `YYYY-MM-DD`, that an instant is on in a time zone; throws for a zone of no such name. */
export function daysIn(timeZone: string): (instant: number) => string {
  // Swedish writes days so.
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' });
  return (instant) => format.format(instant);
}

/** Whether there is a time zone of this name. */
export function isTimeZone(name: string): boolean {
  return !Number.isNaN(tzOffset(name, new Date(0)));
}

/**
 * When a day, `YYYY-MM-DD`, begins in a time zone, and when the next one does: at midnight, or at the first minute after
 * it that the clocks show.
 */
export function boundsOfDay(day: string, timeZone: string): [start: number, end: number] {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  const startOf = (each: number) => new TZDate(year, month - 1, each, timeZone).getTime();
  return [startOf(date), startOf(date + 1)];
}
