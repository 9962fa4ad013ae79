import { addressKey } from './email-address.ts';

/**
 * The mailbox behind an e-mail address, so that limits count all addresses that reach one person as one:
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

/** Domains whose mail goes to the mailboxes of another. */
const sameDomains = new Map([
  ['googlemail.com', 'gmail.com'],
  ['protonmail.com', 'proton.me'],
  ['pm.me', 'proton.me'],
]);

/** Providers that ignore dots before the `@`. */
const dotlessDomains = new Set(['gmail.com', 'proton.me']);
