import { type SecretKey, signLink, verifyLink } from '../../domain/secrets.ts';

/** The signed time at which a session's page was made, in milliseconds. Not valid for another session. */
export function issueToken(key: SecretKey, sessionId: string, now: number): string {
  return signLink(key, PURPOSE, `${sessionId}:${now}`, now + MAX_AGE_MS);
}

/**
 * Whether a page was sent back sooner than a person could fill it. A token that is missing, forged
 * or another session's counts as too quick: it proves no waiting time.
 */
export function isTooQuick(
  keys: readonly SecretKey[],
  visit: Visit,
  minSeconds: number | undefined,
): boolean {
  if (minSeconds === undefined || minSeconds === 0) return false;
  const issued = issuedAt(keys, visit);
  return issued === undefined || visit.now < issued + minSeconds * 1000;
}

/** When a session's page was made, in milliseconds; undefined if the token does not prove it. */
export function issuedAt(keys: readonly SecretKey[], visit: Visit): number | undefined {
  const opened = verifyLink(keys, PURPOSE, visit.token, visit.now);
  if (!opened.ok) return undefined;
  const [sessionId, time] = opened.value.split(':');
  return sessionId === visit.sessionId ? Number(time) : undefined;
}

const PURPOSE = 'issue';

/** Three times as long as a session lives unless it is extended: a page may stay open in a browser. */
const MAX_AGE_MS = 90 * 24 * 60 * 60 * 1000;

export type Visit = { token: string; sessionId: string; now: number };
