import type { MailRow } from './message.ts';

/**
 * Cuts long answers and leaves out the last ones of very many, so that an email stays small in both of its
 * parts. Bytes are counted as in HTML, where some characters take six.
 */
export function shortenRows(rows: MailRow[]): { rows: MailRow[]; shortened: boolean } {
  const kept: MailRow[] = [];
  let left = MAX_MAIL_BYTES;
  let shortened = false;
  for (const { text, ...row } of rows) {
    left -= bytesOf(row.label, left);
    for (const { name, url } of row.links ?? []) left -= bytesOf(name, left) + bytesOf(url, left);
    if (left <= 0) return { rows: kept, shortened: true };
    const short = shorten(text, Math.min(left, MAX_ANSWER_BYTES));
    left -= bytesOf(short, left);
    shortened ||= short !== text;
    kept.push({ ...row, text: short });
  }
  return { rows: kept, shortened };
}

/** What a field without limits of its own takes, 10,000 characters, in any script. */
const MAX_ANSWER_BYTES = 32 * 1024;

/** Labels and answers. */
const MAX_MAIL_BYTES = 128 * 1024;

/** The beginning of a text, up to `max` bytes of HTML with an ellipsis; whole if it fits. */
function shorten(text: string, max: number): string {
  const { end } = measure(text, max);
  if (end === text.length) return text;
  const { end: cut } = measure(text, Math.max(0, max - ELLIPSIS_BYTES));
  return `${text.slice(0, startOfCharacter(text, cut))}…`;
}

const ELLIPSIS_BYTES = 3;

/** The bytes of a text as HTML, or a number above `most` if there are more. */
function bytesOf(text: string, most: number): number {
  return measure(text, most).bytes;
}

/** How many UTF-16 units of a text fit into `max` bytes of HTML, in whole code points, and the bytes of as much. */
function measure(text: string, max: number): { end: number; bytes: number } {
  let [end, bytes] = [0, 0];
  for (const char of text) {
    bytes += escapedBytes[char] ?? Buffer.byteLength(char);
    if (bytes > max) break;
    end += char.length;
  }
  return { end, bytes };
}

/** The place before `end` at which no character that people see, such as an emoji with a skin tone, is cut. */
function startOfCharacter(text: string, end: number): number {
  const from = Math.max(0, end - LONGEST_CHARACTER);
  const around = text.slice(from, end + LONGEST_CHARACTER);
  const start = new Intl.Segmenter().segment(around).containing(end - from)?.index ?? 0;
  return start > 0 ? from + start : end;
}

/** In UTF-16 units: a family emoji has eleven. What is longer, such as heaps of accents, may be cut. */
const LONGEST_CHARACTER = 64;

/** As `html` escapes them. */
const escapedBytes: Record<string, number> = { '&': 5, '<': 4, '>': 4, '"': 6, "'": 5 };
