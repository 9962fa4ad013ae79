import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { HOUR_MS } from '../../domain/limits/limits.ts';
import { DEVICE_MS } from '../../domain/links.ts';
import { newToken } from '../../domain/secrets/new-secrets.ts';
import { type FormInputs, lastOf } from '../../http/multipart.ts';
import { cookieOf, cookiePath } from '../cookies.ts';

/** The session that a browser has; undefined if it has none. */
export function sessionOf(request: Request, options: CookieOptions): string | undefined {
  return cookieOf(request, cookieName(request, options));
}

/** Gives the browser a session until `expires`; without one takes away the one that it has. */
export function setSession(
  request: Request,
  response: Response,
  options: CookieOptions,
  session?: { token: string; expires: Date },
): void {
  const name = cookieName(request, options);
  if (session === undefined) response.clearCookie(name, cookieOptions(request, options));
  else response.cookie(name, session.token, { ...cookieOptions(request, options), expires: session.expires });
}

/** Remembers in the browser which page was asked for, or posted from, to go on to it after signing in. */
export function rememberPage(request: Request, response: Response, options: CookieOptions): void {
  const [page] = (request.method === 'GET' ? withinOwner : ofOwner).exec(request.path) ?? [];
  if (page === undefined) return;
  response.cookie(PAGE_COOKIE, page, { ...cookieOptions(request, options), maxAge: PAGE_MS });
}

/** The page below `/owner` that was remembered, and forgets it; empty if there is none. */
export function takePage(request: Request, response: Response, options: CookieOptions): string {
  const page = cookieOf(request, PAGE_COOKIE) ?? '';
  response.clearCookie(PAGE_COOKIE, cookieOptions(request, options));
  return withinOwner.exec(page)?.[1] ?? '';
}

/** What proves that an owner has signed in with this browser before; empty if none has. */
export function deviceTokenOf(request: Request, options: CookieOptions): string {
  return cookieOf(request, deviceCookieName(request, options)) ?? '';
}

/** Lets the browser prove from now on that an owner has signed in with it. */
export function setDeviceToken(
  request: Request,
  response: Response,
  options: CookieOptions,
  token: string,
): void {
  const name = deviceCookieName(request, options);
  response.cookie(name, token, { ...cookieOptions(request, options), maxAge: DEVICE_MS });
}

/** What only this browser has, so that a link that it asks for signs in here alone; made when it is first needed. */
export function browserOf(request: Request, response: Response, options: CookieOptions): string {
  const name = `${cookieName(request, options)}-browser`;
  const browser = cookieOf(request, name) ?? newToken();
  response.cookie(name, browser, { ...cookieOptions(request, options), maxAge: DEVICE_MS });
  return browser;
}

/** What a page puts into its forms, which no other site can know: it proves that the page was read in this session. */
export function csrfToken(session: string): string {
  return createHmac('sha256', session).update('csrf').digest('base64url');
}

/** Throws unless a post comes from a page of the session. */
export function checkCsrf(inputs: FormInputs, session: string): void {
  const given = Buffer.from(lastOf(inputs, CSRF_INPUT));
  const expected = Buffer.from(csrfToken(session));
  if (given.length === expected.length && timingSafeEqual(given, expected)) return;
  throw failed(Reason.ORIGIN_NOT_ALLOWED, 'The form lacks the token of its page');
}

/**
 * Throws unless a post comes from a page of this service, at one of its own addresses or at the one that the browser
 * called. Every browser names the origin.
 */
export function checkOrigin({ headers }: Request, ownOrigins: readonly string[]): void {
  const { origin, host } = headers;
  const isOwn = origin !== undefined && (ownOrigins.includes(origin) || hostIn(origin) === host);
  if (!isOwn) throw failed(Reason.ORIGIN_NOT_ALLOWED, 'The post comes from another origin');
}

/** The name of the input that holds `csrfToken`. */
export const CSRF_INPUT = 'csrf';

function hostIn(origin: string): string | undefined {
  return /^https?:\/\/([\w.:[\]-]+)$/.exec(origin)?.[1];
}

/** Browsers take a cookie of this name over https alone and from this host, so that nobody else can set it. */
function cookieName(request: Request, options: CookieOptions): string {
  return isSecure(request, options) ? '__Host-owner' : 'owner';
}

function deviceCookieName(request: Request, options: CookieOptions): string {
  return `${cookieName(request, options)}-device`;
}

function cookieOptions(request: Request, options: CookieOptions) {
  const secure = isSecure(request, options);
  // What the prefix `__Host-` asks for.
  const path = secure ? '/' : cookiePath(options.baseUrl, '/owner');
  return { httpOnly: true, secure, sameSite: 'lax' as const, path };
}

function isSecure(request: Request, { baseUrl }: CookieOptions): boolean {
  return request.secure || baseUrl.startsWith('https:');
}

/** A page that a mail may lead to. */
const withinOwner = /^\/owner\/((?:forms|submissions)\/[a-z]+_[0-9a-z]+)$/;

/** The page that a post is about. */
const ofOwner = /^\/owner\/(?:forms|submissions)\/[a-z]+_[0-9a-z]+/;

const PAGE_COOKIE = 'owner-page';
const PAGE_MS = HOUR_MS;

export type CookieOptions = {
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
};
