import type { Request, Response } from 'express';
import { isId } from '../domain/ids.ts';
import { DAY_MS } from '../domain/limits/limits.ts';

/** The value of a cookie that the browser has sent; undefined if there is none, or it is no text. */
export function cookieOf({ headers }: Request, name: string): string | undefined {
  for (const part of (headers.cookie ?? '').split(';')) {
    const [key = '', ...value] = part.trim().split('=');
    if (key === name) return decoded(value.join('='));
  }
  return undefined;
}

/** The path of the service's public address and what follows it, as cookies are limited to it. */
export function cookiePath(address: string, path: string): string {
  return `${new URL(address).pathname.replace(/\/$/, '')}${path}`;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * The cookie by which a form's own page, when it is opened anew, finds the session that its visitor has begun, until it
 * is submitted. It names those of further tabs, too. It is for the page's path and goes with the browser's session,
 * since others may use the device, unless the person asks to be remembered.
 */
export function readVisitorCookie(request: Request, hostedUrl: string, formId: string): VisitorCookie {
  const parts = (cookieOf(request, visitorCookieOf(hostedUrl, formId)) ?? '').split('.');
  return { sessionIds: parts.filter((part) => isId('sess', part)), remembers: parts.includes(REMEMBERS) };
}

/** Sets the cookie; without a session it is deleted. */
export function setVisitorCookie(
  response: Response,
  { sessionIds, remembers }: VisitorCookie,
  { hostedUrl, formId, isFramed }: Framed,
): void {
  // Of two cookies of one name in a reply browsers may keep either, so the earlier one goes.
  response.removeHeader('set-cookie');
  const name = visitorCookieOf(hostedUrl, formId);
  const options = optionsFor(hostedUrl, `/f/${formId}`, isFramed);
  const value = sessionIds.slice(0, MAX_TABS);
  if (value.length === 0) response.clearCookie(name, options);
  else if (remembers)
    response.cookie(name, [...value, REMEMBERS].join('.'), { ...options, maxAge: REMEMBERED_DAYS * DAY_MS });
  else response.cookie(name, value.join('.'), options);
}

/** What only the browser has in which a respondent gives codes, or to correct what was sent; empty if it has none. */
export function readSecretCookie(request: Request, { hostedUrl, name }: Secret): string {
  return cookieOf(request, secretCookieOf(hostedUrl, name)) ?? '';
}

/**
 * Gives the browser what `readSecretCookie` reads. With codes it is for 30 days, as long as a session may live; else until
 * it is closed, since others may use the device.
 */
export function setSecretCookie(
  response: Response,
  secret: string,
  { hostedUrl, name, isFramed }: Secret & Pick<Framed, 'isFramed'>,
): void {
  const lasting = name === 'respondent' && { maxAge: 30 * DAY_MS };
  const options = { ...optionsFor(hostedUrl, '/', isFramed), ...lasting };
  response.cookie(secretCookieOf(hostedUrl, name), secret, options);
}

/**
 * What both have: the path, unless the name binds the cookie to the host, and whether other sites may have the page.
 */
function optionsFor(hostedUrl: string, path: string, isFramed: boolean) {
  const secure = hostedUrl.startsWith('https:');
  return {
    path: secure ? '/' : cookiePath(hostedUrl, path),
    httpOnly: true,
    secure,
    // In a frame of another site browsers keep only such cookies, apart for each of those sites.
    ...(secure && isFramed ? { sameSite: 'none' as const, partitioned: true } : { sameSite: 'lax' as const }),
  };
}

function secretCookieOf(hostedUrl: string, name: Secret['name']): string {
  return hostedUrl.startsWith('https:') ? `__Host-${name}` : name;
}

type Secret = Pick<Framed, 'hostedUrl'> & { name: 'respondent' | 'correction' };

/**
 * Browsers take a cookie with the prefix from this host alone, and for all of its paths. On https no other is read: a
 * sibling host could have set it.
 */
function visitorCookieOf(hostedUrl: string, formId: string): string {
  return hostedUrl.startsWith('https:') ? `__Host-visit-${formId}` : 'form_visit';
}

/** Ends the value of a cookie that outlasts the browser's session: a browser does not say how long it keeps one. */
const REMEMBERS = 'remembers';

/** How many pages of a form can be filled at once in one browser. */
const MAX_TABS = 8;

/** As long as a visitor's session accepts answers. */
export const REMEMBERED_DAYS = 7;

/** The session that was gone on with last comes first; there is none without a cookie. */
export type VisitorCookie = { sessionIds: string[]; remembers: boolean };

/** `isFramed`: other sites may have the page within theirs. */
type Framed = { hostedUrl: string; formId: string; isFramed: boolean };
