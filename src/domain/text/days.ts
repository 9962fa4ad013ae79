import { DAY_MS } from '../limits/limits.ts';

/** Gives the day of the calendar, `YYYY-MM-DD`, that an instant is on in a time zone; throws for a zone of no such name. */
export function daysIn(timeZone: string): (instant: number) => string {
  // Swedish writes days so.
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' });
  return (instant) => format.format(instant);
}

/** Whether there is a time zone of this name. */
export function isTimeZone(name: string): boolean {
  try {
    return daysIn(name) !== undefined;
  } catch {
    return false;
  }
}

/**
 * When a day, `YYYY-MM-DD`, begins in a time zone, and when the next one does: at midnight, or at the first minute after
 * it that the clocks show.
 */
export function boundsOfDay(day: string, timeZone: string): [start: number, end: number] {
  const dayOf = daysIn(timeZone);
  const firstOf = (isReached: (other: string) => boolean) => {
    let [before, first] = [Date.parse(day) - DAY_MS, Date.parse(day) + 2 * DAY_MS];
    while (first - before > 1) {
      const middle = Math.floor((before + first) / 2);
      if (isReached(dayOf(middle))) first = middle;
      else before = middle;
    }
    return first;
  };
  return [firstOf((other) => other >= day), firstOf((other) => other > day)];
}
