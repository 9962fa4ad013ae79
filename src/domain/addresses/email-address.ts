/**
 * Whether a text is one plain email address: `local@domain.tld`, ASCII, at most 254 characters.
 *
 * Strict on purpose, since addresses end up in email headers and envelopes: no display name, quotes,
 * comments, lists, address literals, blanks or line breaks.
 */
export function isEmailAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_LENGTH && pattern.test(text) && localPart.test(text);
}

/** Returns the address in lower case, to compare addresses in limits and stop lists. Never send to it. */
export function addressKey(text: string): string {
  return text.toLowerCase();
}

/** The pattern behind `isEmailAddress`, without its lengths, as JSON Schema and HTML take it. */
export const emailPattern =
  "^[A-Za-z0-9!#$%&'*+\\/=?^_`\\{\\|\\}~\\-]+(?:\\.[A-Za-z0-9!#$%&'*+\\/=?^_`\\{\\|\\}~\\-]+)*" +
  '@(?:[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])$';

/** How long the part before the @ may be (RFC 5321, 4.5.3.1.1). A pattern of its own: Go and RE2 know no lookahead. */
export const localPartPattern = '^[^@]{1,64}@';

const pattern = new RegExp(emailPattern);
const localPart = new RegExp(localPartPattern);

/** RFC 5321's path limit of 256, less its brackets. */
export const MAX_ADDRESS_LENGTH = 254;

/**
 * The mailbox behind an email address, so that limits count all addresses that reach one person as one:
 * in lower case, without `+tag`, and for providers known for it without dots and under one domain.
 *
 * Only to compare and to count; never send to it.
 */
export function mailboxOf(address: string): string {
  const key = addressKey(address);
  const at = key.lastIndexOf('@');
  const domain = domainOf(key.slice(at + 1));
  const local = withoutTag(key.slice(0, at));
  return `${dotlessDomains.has(domain) ? local.replaceAll('.', '') : local}@${domain}`;
}

/** What stands before the first `+`; an address that begins with one has no tag. */
function withoutTag(local: string): string {
  const plus = local.indexOf('+');
  return plus > 0 ? local.slice(0, plus) : local;
}

function domainOf(domain: string): string {
  return sameDomains.get(domain) ?? domain;
}

/** Domains whose email goes to the mailboxes of another. */
const sameDomains = new Map([
  ['googlemail.com', 'gmail.com'],
  ['protonmail.com', 'proton.me'],
  ['pm.me', 'proton.me'],
]);

/** Providers that ignore dots before the `@`. */
const dotlessDomains = new Set(['gmail.com', 'proton.me']);
