/**
 * One line of plain text for a header or a title: no control characters, no marks that change the text
 * direction of what follows, no more than `max` characters.
 */
export function oneLine(text: string, max = MAX_LINE_CHARS): string {
  const line = text.replace(unprintable, ' ').replace(/\s+/g, ' ').trim();
  const chars = [...line];
  return chars.length > max ? `${chars.slice(0, max - 1).join('')}…` : line;
}

/**
 * Text by a stranger, for a reader who has not asked for it: one line of up to 100 characters, in which `[…]`
 * stands for each word that a program could turn into a link.
 */
export function withoutLinks(text: string): string {
  const words = oneLine(text, MAX_STRANGER_CHARS).split(' ');
  return words.map((word) => (isLinkLike(word) ? '[…]' : word)).join(' ');
}

/**
 * The same words, but no program turns any of them into a link: `https://example.com` becomes
 * `https[:]//example[.]com`. Blanks and line breaks stay as they are.
 */
export function withBrokenLinks(text: string): string {
  return text.replace(/(?:\S|\ufeff)+/g, (word) => (isLinkLike(word) ? breakLink(word) : word));
}

/**
 * The same words, without what a chat could take for a link, a mention or markup: marks such as `<`, `*` and `[` become
 * others that look like them.
 */
export function withoutMarkup(text: string): string {
  return withBrokenLinks(text.replace(unprintableInText, ' '))
    .replace(/^[^\S\n]+/gm, '')
    .replace(/^[-+=]/gm, (mark) => lookAlikes[mark] ?? mark)
    .replace(/[&<>*_~`|\\#[\]@]/g, (mark) => lookAlikes[mark] ?? mark);
}

/** The letters and digits of a text, with spaces for everything else; up to 60 characters, or none. */
export function lettersAndDigits(text: string): string {
  const plain = text
    .replace(invisible, '')
    .normalize('NFKC')
    .replace(/[^\p{L}\p{M}\p{Nd}]+/gu, ' ');
  return [...plain.trim()].slice(0, MAX_NAME_CHARS).join('').trim();
}

const MAX_LINE_CHARS = 200;
const MAX_STRANGER_CHARS = 100;
const MAX_NAME_CHARS = 60;

/** Control characters, line and paragraph separators, bidirectional marks, lone surrogates. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/** The same, but for line breaks. */
const unprintableInText =
  /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/** Full-width forms of the marks that Markdown and Slack's markup give a meaning. */
const lookAlikes: Readonly<Record<string, string>> = {
  '&': '＆',
  '<': '＜',
  '>': '＞',
  '*': '＊',
  _: '＿',
  '~': '～',
  '`': '｀',
  '|': '｜',
  '\\': '＼',
  '#': '＃',
  '[': '［',
  ']': '］',
  '@': '＠',
  '-': '－',
  '+': '＋',
  '=': '＝',
};

/** What takes no room between other characters, so that `ev\u200bil` looks like `evil`. */
const invisible = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Whether mail programs or browsers could take a word for an address of a page, a person or a host.
 *
 * Full-width and other compatibility forms count as what they look like, and invisible characters are ignored,
 * as some programs do both. Decimal numbers, dates and abbreviations such as `z.B.` are no addresses.
 */
function isLinkLike(word: string): boolean {
  const plain = word.replace(invisible, '').normalize('NFKC').toLowerCase();
  return links.some((link) => link.test(plain)) || (dottedNumber.test(plain) && !honestNumber.test(plain));
}

/** By normalized words in lower case. */
const links = [
  // People, everything with a scheme, also a masked one: `https://`, `hxxp:\\`, `mailto:`, and signs as bytes or entities.
  /@|\/\/|\\\\|:[\\/]|\bwww\b|%(?:2e|3a|40)|&(?:#|\w+;)/u,
  /(?:^|[^\p{L}\p{N}])(?:h[tx]{2}ps?|s?ftps?|mailto|tel|sms|callto|javascript|vbscript|data|file|blob|wss?):/u,
  // Names of hosts, emoji too. Only before Latin letters or digits is the ideographic full stop a dot.
  /[\p{L}\p{N}\p{M}\p{So}\p{Sk}][.][\p{L}\p{M}]{2,}|[.]xn--|[\p{L}\p{N}\p{M}\p{So}\p{Sk}][\u3002][a-z0-9]/u,
  // IPv6 addresses, and IPv4 addresses as one number.
  /::|(?:[0-9a-f]{1,4}:){4}|0x[0-9a-f]{5}|\d{9}/u,
];

/** IPv4 addresses of two to four numbers, decimal, octal or hexadecimal. */
const dottedNumber = /(?:0x[0-9a-f]+|\d)[.](?:0x[0-9a-f]|\d)/u;

/** `2.0`, `3,50`, `22.11.2026`. */
const honestNumber = /^[^\p{L}\p{N}.]*\d{1,2}[.]\d{1,2}(?:[.](?:\d{4}|\d{2})?)?[^\p{L}\p{N}.]*[.]?$/u;

function breakLink(word: string): string {
  return word.replace(invisible, '').replace(/./gu, (char) => {
    const plain = char.normalize('NFKC');
    return /^[.:@\u3002]$/u.test(plain) ? `[${plain === '\u3002' ? '.' : plain}]` : char;
  });
}
