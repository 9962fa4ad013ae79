/** A number with the separators of the language. */
export function inDigits(count: number, tag: string): string {
  return new Intl.NumberFormat(tag).format(count);
}

/** An instant as people read it, in UTC, and saying so. */
export function timeInWords(time: Date, tag: string): string {
  const format = new Intl.DateTimeFormat(tag, {
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    timeZone: 'UTC',
    timeZoneName: 'short',
  });
  return format.format(time);
}

/** A day (UTC) as people read it. */
export function dayInWords(time: Date, tag: string): string {
  return new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' }).format(time);
}
