import type { Request, Response } from 'express';

/**
 * The cookie by which a form's own page, when it is opened anew, finds the session that its visitor has begun, until it
 * is submitted. It is for the page's path and goes with the browser's session, since others may use the device, unless
 * the person asks to be remembered.
 */
export function readVisitorCookie({ headers }: Request): VisitorCookie {
  const pairs = (headers.cookie ?? '').split(/; */);
  const value = pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? '';
  const remembers = value.endsWith(REMEMBERS);
  return { sessionId: remembers ? value.slice(0, -REMEMBERS.length) : value, remembers };
}

/** Sets the cookie; without a session it is deleted. */
export function setVisitorCookie(
  response: Response,
  { sessionId, remembers }: VisitorCookie,
  page: Framed,
): void {
  const { protocol, pathname } = new URL(page.hostedUrl);
  const attributes = [
    `${COOKIE}=${sessionId}${sessionId !== '' && remembers ? REMEMBERS : ''}`,
    `Path=${pathname.replace(/\/$/, '')}/f/${page.formId}`,
    'HttpOnly',
    ...(sessionId === '' ? ['Max-Age=0'] : remembers ? [`Max-Age=${REMEMBERED_DAYS * DAY_SECONDS}`] : []),
    ...(protocol === 'https:' ? ['Secure'] : []),
    // Within another site's page browsers keep cookies only so, for each such site apart.
    ...(protocol === 'https:' && page.isFramed ? ['SameSite=None', 'Partitioned'] : ['SameSite=Lax']),
  ];
  response.setHeader('set-cookie', attributes.join('; '));
}

const COOKIE = 'form_visit';

/** Ends the value of a cookie that outlasts the browser's session: a browser does not say how long it keeps one. */
const REMEMBERS = '.remembers';

/** As long as a visitor's session takes answers. */
export const REMEMBERED_DAYS = 7;

const DAY_SECONDS = 24 * 60 * 60;

/** `sessionId` is empty if there is no cookie. */
export type VisitorCookie = { sessionId: string; remembers: boolean };

/** `isFramed`: other sites may have the page within theirs. */
type Framed = { hostedUrl: string; formId: string; isFramed: boolean };
