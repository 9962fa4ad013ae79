import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../errors/failure.ts';
import { MAX_REFERRER_LENGTH } from '../limits/limits.ts';
import { withOneLoopback } from './ip-address.ts';

/**
 * Refuses a browser whose page may not post to a form. Callers other than browsers send no `origin` and
 * pass; `null`, which sandboxed pages and files send, is refused. The service's own pages always pass.
 */
export function checkOrigin(header: Headers, allowedOrigins: readonly string[], own: OwnAddresses): void {
  const origin = header.get('origin');
  if (origin === null || allowedOrigins.length === 0 || allowedOrigins.includes(origin)) return;
  if (origin === originOf(own.baseUrl) || origin === originOf(own.hostedUrl)) return;
  throw failed(Reason.ORIGIN_NOT_ALLOWED, refusalOf(origin, allowedOrigins));
}

/** What the maker of a site has to change. */
function refusalOf(origin: string, allowedOrigins: readonly string[]): string {
  if (origin === 'null') {
    return 'This page has no origin (Origin: null): it was opened as a file, is in a sandboxed frame, or has the referrer policy no-referrer. Serve it from one of the form’s allowedOrigins';
  }
  const meant = allowedOrigins.find((allowed) => withOneLoopback(allowed) === withOneLoopback(origin));
  if (meant === undefined) return 'Pages of this origin may not post to this form';
  return `Browsers count ${origin} and ${meant} as two origins, and this form allows only the second. Open the page at ${meant}, or add ${origin} to allowedOrigins`;
}

/**
 * The address to send the user of an HTML form to, or an empty text if it may not be followed: it
 * must be http(s), and of the page's own origin or one that the form allows. Else anybody could use
 * a form as a link that leads elsewhere. A relative address is the page's own. `pageUrl` takes the place of what the
 * headers say of the page.
 */
export function allowedRedirect(
  next: string,
  header: Headers,
  allowedOrigins: readonly string[],
  pageUrl = '',
): string {
  const page = pageUrl === '' ? pageOrigin(header) : originOf(pageUrl);
  if (next === '' || next.length > MAX_REFERRER_LENGTH || !URL.canParse(next, page)) return '';
  const url = new URL(next, page);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return '';
  return url.origin === page || allowedOrigins.includes(url.origin) ? url.href : '';
}

function pageOrigin(header: Headers): string | undefined {
  const origin = header.get('origin');
  return originOf(origin === null || origin === 'null' ? (header.get('referer') ?? '') : origin);
}

/** Undefined for a text that is no address, and for an address whose origin is opaque. */
function originOf(address: string): string | undefined {
  const origin = address.length > MAX_REFERRER_LENGTH ? undefined : URL.parse(address)?.origin;
  return origin === 'null' ? undefined : origin;
}

export type OwnAddresses = { baseUrl: string; hostedUrl: string };
