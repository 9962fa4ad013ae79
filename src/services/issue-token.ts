import { type SecretKey, signLink, verifyLink } from '../domain/secrets.ts';

/** The signed time at which a session's page was made, in milliseconds. Worth nothing for another session. */
export function issueToken(key: SecretKey, sessionId: string, now: number): string {
  return signLink(key, PURPOSE, `${sessionId}:${now}`, null);
}

/**
 * Whether a page was sent back sooner than a person could fill it. A token that is missing, forged
 * or another session's is too quick as well: whoever has none has not waited for a page.
 */
export function isTooQuick(key: SecretKey, visit: Visit, minSeconds: number | undefined): boolean {
  if (minSeconds === undefined || minSeconds === 0) return false;
  const opened = verifyLink(key, PURPOSE, visit.token, visit.now);
  if (!opened.ok) return true;
  const [sessionId, issuedAt] = opened.value.split(':');
  return sessionId !== visit.sessionId || visit.now < Number(issuedAt) + minSeconds * 1000;
}

const PURPOSE = 'issue';

export type Visit = { token: string; sessionId: string; now: number };
