// Scripts of the pages import this file too, so it imports nothing.

/** A number with the separators of the language. */
export function inDigits(count: number, tag: string): string {
  return new Intl.NumberFormat(tag).format(count);
}

/** An instant as people read it: in a time zone, or in UTC and saying so. */
export function timeInWords(time: Date, tag: string, timeZone?: string): string {
  return withDay({ year: 'numeric', month: 'long', day: 'numeric' }, time, tag, timeZone);
}

/** An instant of these days as people read it: in a time zone, or in UTC and saying so. */
export function momentInWords(time: Date, tag: string, timeZone?: string): string {
  return withDay({ month: 'short', day: 'numeric' }, time, tag, timeZone);
}

function withDay(day: Intl.DateTimeFormatOptions, time: Date, tag: string, timeZone?: string): string {
  // A clock of 24 hours has 01:05, one of 12 hours 1:05 am.
  const { hour12 } = new Intl.DateTimeFormat(tag, { hour: 'numeric' }).resolvedOptions();
  const format = new Intl.DateTimeFormat(tag, {
    ...day,
    hour: hour12 === true ? 'numeric' : '2-digit',
    minute: '2-digit',
    timeZone: timeZone ?? 'UTC',
    ...(timeZone === undefined && { timeZoneName: 'short' }),
  });
  return format.format(time);
}

/** A day (UTC) as people read it where there is little room. */
export function shortDayInWords(time: Date, tag: string): string {
  return new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeZone: 'UTC' }).format(time);
}

/** A day (UTC) as people read it. */
export function dayInWords(time: Date, tag: string): string {
  return new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' }).format(time);
}

/** The size of a file as people of a language read it: `12 kB`, `1.9 MB`, in French `1,9 Mo`. */
export function fileSizeInWords(bytes: number, tag: string): string {
  return bytes < MEGABYTE
    ? inUnit(Math.ceil(bytes / KILOBYTE), 'kilobyte', tag)
    : inUnit(bytes / MEGABYTE, 'megabyte', tag);
}

/**
 * The most bytes that a file may have, as it was set: of 1,024s or of 1,000s, `10 MB` and `512 kB`. What is round in
 * neither is rounded down.
 */
export function sizeLimitInWords(bytes: number, tag: string): string {
  const unit = bytes % KILOBYTE !== 0 && bytes % 1000 === 0 ? 1000 : KILOBYTE;
  if (bytes >= unit * unit) return inUnit(Math.floor((bytes / unit / unit) * 10) / 10, 'megabyte', tag);
  return bytes >= unit ? inUnit(Math.floor(bytes / unit), 'kilobyte', tag) : `${bytes} B`;
}

function inUnit(size: number, unit: 'kilobyte' | 'megabyte', tag: string): string {
  return size.toLocaleString(tag, {
    style: 'unit',
    unit,
    maximumFractionDigits: 1,
    numberingSystem: 'latn',
  });
}

const KILOBYTE = 1024;
const MEGABYTE = 1024 * 1024;
