import { randomBytes } from 'node:crypto';
import { fingerprint } from '../../domain/json/json-text.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { signLink, verifyLink } from '../../domain/links.ts';
import type { SecretKey } from '../../domain/secrets/secret-key.ts';
import type { Idempotency } from '../idempotency.ts';

/**
 * The signed time at which a page of a session, or of a form for its visitors, was made, in milliseconds. Not valid
 * for another one. No two pages have the same token.
 */
export function issueToken(key: SecretKey, pageId: string, now: number): string {
  const nonce = randomBytes(NONCE_BYTES).toString('base64url');
  return signLink(key, PURPOSE, `${pageId}:${now}:${nonce}`, now + MAX_AGE_MS);
}

/**
 * What makes a page's posts repeatable, in a browser that has `begun` these sessions where it matters; undefined if
 * its token is none that it may have.
 */
export function keyOfPage(
  keys: readonly SecretKey[],
  visit: PageVisit,
  content: Record<string, unknown>,
  begun: readonly string[] = [],
): Idempotency | undefined {
  const nonce = openToken(keys, visit)?.nonce;
  const key = `page:${[nonce, ...begun].join(':')}`;
  return nonce === undefined ? undefined : { key, fingerprint: fingerprint(content) };
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
  const issued = openToken(keys, visit)?.issuedAt;
  return issued === undefined || visit.now < issued + minSeconds * 1000;
}

/**
 * When a page was made, in milliseconds, and what tells it apart; undefined if the token is not one of those that it
 * may have.
 */
export function openToken(keys: readonly SecretKey[], { token, pageIds, now }: PageVisit) {
  const opened = verifyLink(keys, PURPOSE, token, now);
  if (!opened.ok) return undefined;
  // Pages of sessions that an older version has made have none: a session makes one submission anyway.
  const [pageId = '', time = '', nonce = pageId.startsWith('sess_') ? `${pageId}:${time}` : undefined] =
    opened.value.split(':');
  return pageIds.includes(pageId) ? { issuedAt: Number(time), nonce } : undefined;
}

const PURPOSE = 'issue';

/** Three times as long as a session lives unless it is extended: a page may stay open in a browser. */
const MAX_AGE_MS = 90 * DAY_MS;

/** As much as no two pages share. */
const NONCE_BYTES = 12;

/** A page that came back: its token, and the session or the form that it must be of. */
export type PageVisit = { token: string; pageIds: readonly string[]; now: number };
