import { LinkifyIt } from 'linkify-it';
import { asciiAddress } from '../../domain/addresses/ascii-address.ts';
import { type Content, html } from '../../domain/text/html.ts';
import type { Language } from '../../text/words.ts';

/**
 * A text of a form's author, where the addresses that are written out in full are links to new windows. A link reads as
 * the address that it leads to, with its domain in ASCII: none looks like another.
 */
export function withLinks(text: string, { linksAddresses }: Pick<Language, 'linksAddresses'>): Content {
  const parts: Content[] = [];
  let end = 0;
  for (const { index, lastIndex, raw } of linksAddresses === true ? (linkify.match(text) ?? []) : []) {
    const [scheme = ''] = /^mailto:/i.exec(raw) ?? [];
    const address = `${scheme}${asciiAddress(raw.slice(scheme.length))}`;
    // What stands before an @ is not where such an address leads.
    if (/^\S*@/.test(text.slice(lastIndex)) || !URL.canParse(address)) continue;
    const link = html`<a href="${address}" target="_blank" rel="noopener noreferrer" dir="ltr">${address}</a>`;
    parts.push(text.slice(end, index), link);
    end = lastIndex;
  }
  return [...parts, text.slice(end)];
}

const linkify = new LinkifyIt({ fuzzyLink: false, fuzzyEmail: false }).add('ftp:', null).add('//', null);
