// The hosted page's script imports this file too, so it imports nothing.

/**
 * What people type and paste in place of ASCII: digits of all scripts, full-width signs, dashes, minuses and spaces
 * become the plain ones, and marks without width go.
 */
export function plainSigns(text: string): string {
  return text
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .replace(/\p{Nd}/gu, (digit) => String(digitOf(digit.codePointAt(0) ?? 0)))
    .replace(/[\p{Pd}\u2212\u207b\u2043\u30fc\uff70]/gu, '-')
    .replace(/\s/g, ' ')
    .replace(/[\uff01-\uff5e]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - FULL_WIDTH));
}

/**
 * A telephone number as it is stored, with the brackets, spaces and hyphens that it came with, in ASCII: `ext. 12` and
 * `x12` become `;ext=12`.
 */
export function foldPhone(text: string): string {
  return text.length > MAX_PASTED ? text : plainSigns(text).trim().replace(extension, ';ext=$1');
}

const extension = / ?[,;]? ?(?:ext(?:ension)?[.:=]?|x\.?) ?(\d{1,10})$/i;

/** More than any number with everything that an app puts around it. */
const MAX_PASTED = 200;

/** Digits come in tens without gaps, the first of which is 0. */
function digitOf(digit: number): number {
  let first = digit;
  while (/^\p{Nd}$/u.test(String.fromCodePoint(first - 1))) first -= 1;
  return (digit - first) % 10;
}

/** Whether a text has characters, but none that can be seen: zero width, soft hyphens, fillers, the blank of Braille. */
export function isInvisible(text: string): boolean {
  return text !== '' && !/[^\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);
}

/** Whether a text says nothing: spaces alone, or what can't be seen. */
export function isBlank(text: string): boolean {
  return !/[^\s\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);
}

/**
 * A text in Unicode's normal form C, as texts are compared. More marks on one letter than any language writes are left
 * as they are: sorting them takes a time that grows with their number squared.
 */
export function inNfc(text: string): string {
  // Below U+0300 there are no marks to be joined with the letter before them.
  return /^[\0-\u02ff]*$/.test(text) || /\p{M}{31}/u.test(text) ? text : text.normalize('NFC');
}

/** A text in both normal forms in which answers come, to be found where the database compares them. */
export function normalForms(text: string): string[] {
  return [...new Set([text.normalize('NFC'), text.normalize('NFD')])];
}

const FULL_WIDTH = 0xfee0;
