import { createHmac, timingSafeEqual } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { CookieOptions, Request, Response } from 'express';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { SignInResponse } from '../../../gen/headlessforms/v1/owners_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { HOUR_MS } from '../../domain/limits/limits.ts';
import { DEVICE_MS } from '../../domain/links.ts';
import { newToken } from '../../domain/secrets/new-secrets.ts';
import { isTimeZone } from '../../domain/text/days.ts';
import { type FormInputs, lastOf } from '../../http/multipart.ts';
import { present } from '../../http/shape.ts';
import { cookieOf, cookiePath } from '../cookies.ts';
import type { PageExchange } from '../handler.ts';

/** What the pages for owners keep in the browser that has sent a request. */
export class OwnerCookies {
  /** Whether the browser has called the public address: one that called another has other cookies there. */
  readonly isAtPublicAddress: boolean;
  readonly #request: Request;
  readonly #response: Response;
  readonly #name: string;
  readonly #shared: CookieOptions;

  constructor(request: Request, response: Response, baseUrl: string) {
    const secure = request.secure || baseUrl.startsWith('https:');
    this.isAtPublicAddress = request.headers.host === new URL(baseUrl).host;
    this.#request = request;
    this.#response = response;
    // Browsers take a cookie of this name over https alone and from this host, so that nobody else can set it. The
    // prefix asks for the path, too.
    this.#name = secure ? '__Host-owner' : 'owner';
    // The pages of emailed links and of activation need them, too.
    const path = secure ? '/' : cookiePath(baseUrl, '/');
    this.#shared = { httpOnly: true, secure, sameSite: 'lax', path };
  }

  /** The session that the browser has; undefined if it has none. */
  session(): string | undefined {
    return cookieOf(this.#request, this.#name);
  }

  /** Gives the browser a session until `expires`; without one takes away the one that it has. */
  setSession(session?: { token: string; expires: Date }): void {
    if (session === undefined) this.#response.clearCookie(this.#name, this.#shared);
    else this.#set(this.#name, session.token, { expires: session.expires });
  }

  /** Gives the browser a session that was opened just now, and what proves later that it had one. */
  signIn({ sessionToken, expireTime, deviceToken }: OpenedSession): void {
    this.setSession({ token: sessionToken, expires: timestampDate(present(expireTime)) });
    this.setDeviceToken(deviceToken);
  }

  /** Remembers which page was asked for, or posted from, to go on to it after signing in. */
  rememberPage(): void {
    const { method, path } = this.#request;
    const [page] = (method === 'GET' ? withinOwner : ofOwner).exec(path) ?? [];
    if (page !== undefined) this.#set(PAGE_COOKIE, page, { maxAge: PAGE_MS });
  }

  /** The page below `/owner` that was remembered, and forgets it; empty if there is none. */
  takePage(): string {
    const page = cookieOf(this.#request, PAGE_COOKIE) ?? '';
    this.#response.clearCookie(PAGE_COOKIE, this.#shared);
    return withinOwner.exec(page)?.[1] ?? '';
  }

  /** What proves that an owner has signed in with this browser before; empty if none has. */
  deviceToken(): string {
    return cookieOf(this.#request, `${this.#name}-device`) ?? '';
  }

  /** Lets the browser prove from now on that an owner has signed in with it. */
  setDeviceToken(token: string): void {
    this.#set(`${this.#name}-device`, token, { maxAge: DEVICE_MS });
  }

  /** What only this browser has, so that a link that it asks for signs in here alone; made when it is first needed. */
  browser(): string {
    const name = `${this.#name}-browser`;
    const browser = cookieOf(this.#request, name) ?? newToken();
    this.#set(name, browser, { maxAge: DEVICE_MS });
    return browser;
  }

  /** Remembers what was done, for the page that comes next to say so. */
  announce(done: string): void {
    this.#set(DONE_COOKIE, done, { maxAge: DONE_MS });
  }

  /** What was done just now, and forgets it; empty if nothing was. */
  takeDone(): string {
    const done = cookieOf(this.#request, DONE_COOKIE) ?? '';
    if (done !== '') this.#response.clearCookie(DONE_COOKIE, this.#shared);
    return done;
  }

  /** The fields that this browser shows in a form's list; empty if none were chosen. */
  columns(formId: string): string[] {
    const chosen = cookieOf(this.#request, `${COLUMNS_COOKIE}${formId}`) ?? '';
    return chosen === '' ? [] : chosen.split('.');
  }

  /** Shows these fields from now on; without any, those that are shown unasked. */
  setColumns(formId: string, fieldIds: readonly string[]): void {
    this.#set(`${COLUMNS_COOKIE}${formId}`, fieldIds.join('.'), { maxAge: DEVICE_MS });
  }

  /** The time zone in which the owner's days begin, as the script has named it; without script UTC. */
  timeZone(): string {
    const zone = cookieOf(this.#request, ZONE_COOKIE) ?? '';
    return isTimeZone(zone) ? zone : 'UTC';
  }

  /** Remembers the address that an emailed link was for, to fill it in where its owner signs in. */
  rememberAddress(address: string): void {
    this.#set(ADDRESS_COOKIE, address, { maxAge: PAGE_MS });
  }

  /** The address of an emailed link that was followed here; empty if none was. */
  rememberedAddress(): string {
    return cookieOf(this.#request, ADDRESS_COOKIE) ?? '';
  }

  #set(name: string, value: string, life: Pick<CookieOptions, 'expires' | 'maxAge'>): void {
    this.#response.cookie(name, value, { ...this.#shared, ...life });
  }
}

type OpenedSession = Pick<SignInResponse, 'sessionToken' | 'expireTime' | 'deviceToken'>;

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

/** Throws unless a post comes from a page of this service. */
export function requireOwnPost(exchange: PageExchange): void {
  if (!isOwnPost(exchange)) throw failed(Reason.ORIGIN_NOT_ALLOWED, 'The post comes from another origin');
}

/**
 * Whether a post comes from a page of this service, at one of its own addresses or at the one that the browser called.
 * Every browser names the origin.
 */
export function isOwnPost({ request, ownOrigins }: PageExchange): boolean {
  const { origin, host } = request.headers;
  return origin !== undefined && (ownOrigins.includes(origin) || hostIn(origin) === host);
}

/** The name of the input that holds `csrfToken`. */
export const CSRF_INPUT = 'csrf';

function hostIn(origin: string): string | undefined {
  return /^https?:\/\/([\w.:[\]-]+)$/.exec(origin)?.[1];
}

/** A page that an email may lead to. */
const withinOwner = /^\/owner\/((?:forms|submissions)\/[a-z]+_[0-9a-z]+)$/;

/** The page that a post is about. */
const ofOwner = /^\/owner\/(?:forms|submissions)\/[a-z]+_[0-9a-z]+/;

const PAGE_COOKIE = 'owner-page';
const DONE_COOKIE = 'owner-done';
const ADDRESS_COOKIE = 'owner-address';
const ZONE_COOKIE = 'owner-zone';
const COLUMNS_COOKIE = 'owner-columns-';
const PAGE_MS = HOUR_MS;
/** The page that says so is asked for at once. */
const DONE_MS = 60_000;
