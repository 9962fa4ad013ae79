// Scripts of the pages import this file too, so it imports nothing.

/** An instant that was answered, in words: in a time zone, which it names, and with the seconds that it has. */
export function instantInWords(instant: string, locale: string, timeZone = 'UTC'): string {
  const format = new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    ...(/T\d\d:\d\d:(?!00(?:\.0+)?\D)\d\d/.test(instant) && { second: '2-digit' }),
    timeZone,
    timeZoneName: 'short',
  });
  return format.format(Date.parse(instant));
}
