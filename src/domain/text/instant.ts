// Scripts of the pages import this file too, so it imports nothing.

/** An instant that was answered, in words: in a time zone, which it names, and with the seconds that it has. */
export function instantInWords(instant: Date, locale: string, timeZone = 'UTC'): string {
  const format = new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    ...(instant.getTime() % MINUTE_MS !== 0 && { second: '2-digit' }),
    timeZone,
    timeZoneName: 'short',
  });
  return format.format(instant);
}

const MINUTE_MS = 60_000;
