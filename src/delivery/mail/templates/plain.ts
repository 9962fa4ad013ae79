/**
 * One line of plain text for a header or a title: no control characters, no marks that turn the
 * direction of what follows, no more than `max` characters.
 */
export function oneLine(text: string, max = MAX_HEADER_CHARS): string {
  const line = text.replace(unprintable, ' ').replace(/\s+/g, ' ').trim();
  const chars = [...line];
  return chars.length > max ? `${chars.slice(0, max - 1).join('')}…` : line;
}

/** A stranger's words for a mail that the reader has not asked for: one line without anything to click. */
export function withoutLinks(text: string): string {
  const words = oneLine(text, MAX_STRANGER_CHARS).split(' ');
  return words.map((word) => (linkLike.test(word) ? '[…]' : word)).join(' ');
}

/** Text for between tags and in attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

const MAX_HEADER_CHARS = 200;
const MAX_STRANGER_CHARS = 100;

/** Control characters, line and paragraph separators, bidirectional marks, lone surrogates. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/** What mail programs turn into links: addresses of pages and people, in any script. */
const linkLike = /:\/\/|@|[\p{L}\p{N}][.\u3002\uff0e\uff61][\p{L}\p{N}]{2,}|^www\b/iu;

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
