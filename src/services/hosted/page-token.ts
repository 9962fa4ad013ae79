import { randomBytes } from 'node:crypto';
import { DAY_MS } from '../../domain/durations.ts';
import { signLink, verifyLink } from '../../domain/links/signed-link.ts';
import type { SecretKey } from '../../domain/secrets/secret-key.ts';

/**
 * The signed time at which a page of a session, or of a form for its visitors, was made, in milliseconds. Not valid
 * for another one. No two pages of a form have the same token.
 */
export function issueToken(key: SecretKey, pageId: string, now: number): string {
  const nonce = pageId.startsWith('form_') ? `:${randomBytes(NONCE_BYTES).toString('base64url')}` : '';
  return signLink(key, PURPOSE, `${pageId}:${now}${nonce}`, now + MAX_AGE_MS);
}

/** What tells the pages of a form apart; undefined if the token is none of the form's. */
export function nonceOf(keys: readonly SecretKey[], visit: PageVisit): string | undefined {
  const opened = verifyLink(keys, PURPOSE, visit.token, visit.now);
  if (!opened.ok) return undefined;
  const [pageId = '', , nonce] = opened.value.split(':');
  return visit.pageIds.includes(pageId) ? nonce : undefined;
}

/**
 * Whether a page was sent back sooner than a person could fill it. A token that is missing, forged
 * or another page's counts as too quick: it proves no waiting time.
 */
export function isTooQuick(
  keys: readonly SecretKey[],
  visit: PageVisit,
  minSeconds: number | undefined,
): boolean {
  if (minSeconds === undefined || minSeconds === 0) return false;
  const issued = issuedAt(keys, visit);
  return issued === undefined || visit.now < issued + minSeconds * 1000;
}

/** When a page was made, in milliseconds; undefined if the token does not prove it. */
export function issuedAt(keys: readonly SecretKey[], visit: PageVisit): number | undefined {
  const opened = verifyLink(keys, PURPOSE, visit.token, visit.now);
  if (!opened.ok) return undefined;
  const [pageId = '', time] = opened.value.split(':');
  return visit.pageIds.includes(pageId) ? Number(time) : undefined;
}

const PURPOSE = 'issue';

/** Three times as long as a session lives unless it is extended: a page may stay open in a browser. */
const MAX_AGE_MS = 90 * DAY_MS;

/** As much as no two pages of a form share. */
const NONCE_BYTES = 12;

/** A page that came back: its token, and the session or the form that it must be of. */
export type PageVisit = { token: string; pageIds: readonly string[]; now: number };

/** What the token of a session's page may be of: a visitor may have begun the session on the form's own page. */
export function pagesOf({ id, formId, keylessBytes }: PageSession): string[] {
  return keylessBytes === null ? [id] : [id, formId];
}

type PageSession = { id: string; formId: string; keylessBytes: number | null };
