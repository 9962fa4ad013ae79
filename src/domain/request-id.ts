import { randomUUID } from 'node:crypto';

/** The id of a request in all logs and in its reply: the one that the caller gave if it is well-formed, else a new one. */
export function requestIdFrom(given: unknown): string {
  return typeof given === 'string' && wellFormed.test(given) ? given : randomUUID();
}

/** Request ids go into the log, so only harmless characters are accepted. */
const wellFormed = /^[\w.:-]{1,64}$/;
