import type { IncomingMessage } from 'node:http';
import type { FormInputs } from '../../http/multipart.ts';

/**
 * The address of the page whose form was posted: http or https, by the request's `Referer` or `Origin`; empty if they
 * say none. A post of the service's own page, which it shows in place of a form whose post was refused, names the page
 * before it in `_site`: no other site can post with the service's own origin.
 */
export function postingSite(request: IncomingMessage, inputs: FormInputs, baseUrl: string): PostingSite {
  const { origin = '', referer = '' } = request.headers;
  const site = webAddress(originOf(referer) === origin || origin === '' ? referer : origin);
  if (site === undefined) return { address: '', again: false };
  if (!isOwn(site, request, baseUrl)) return { address: site.href, again: false };
  const before = webAddress(inputs.get(SITE)?.at(-1) ?? '');
  return { address: before?.href ?? '', again: true };
}

/** The input in which the service's own page carries the site's address. */
export const SITE = '_site';

function isOwn({ origin, host }: URL, { headers }: IncomingMessage, baseUrl: string): boolean {
  return origin === originOf(baseUrl) || host === headers.host;
}

function originOf(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : '';
}

/** An address of the web without credentials; undefined for any other text. */
function webAddress(text: string): URL | undefined {
  if (text.length > MAX_ADDRESS || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? url : undefined;
}

/** `again`: the post comes from the service's own page in place of the site's. */
type PostingSite = { address: string; again: boolean };

/** Browsers cut longer referrers to their origin. */
const MAX_ADDRESS = 4096;
