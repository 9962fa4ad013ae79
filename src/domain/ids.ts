import { randomFillSync, randomUUID } from 'node:crypto';

/**
 * A new id: the prefix and a ULID in lower case, so that ids sort by the instant they were made at
 * (to the millisecond; within one, by chance).
 *
 * `now` is in milliseconds since 1970.
 */
export function newId(prefix: IdPrefix, now: number): string {
  return `${prefix}_${encodeTime(now)}${randomText(RANDOM_CHARS)}`;
}

/** A new session id. It is the credential of the person who fills the form: 160 secure random bits, no time. */
export function newSessionId(): string {
  return `sess_${randomText(SESSION_CHARS)}`;
}

/** Whether a text has the shape of an id with this prefix. If not, there is no need to ask the database. */
export function isId(prefix: IdPrefix | 'sess', text: string): boolean {
  return shapes.get(prefix)?.test(text) === true || (prefix === 'form' && text === demoFormId);
}

/**
 * Returns the smallest id that can be made at this instant (in milliseconds) or later, so that queries can limit
 * time by ids. Instants outside of what ids can hold are moved to the nearest one inside.
 */
export function smallestIdAt(prefix: IdPrefix, instant: number): string {
  const time = Math.ceil(Math.min(Math.max(instant, 0), MAX_TIME));
  return `${prefix}_${encodeTime(time)}${'0'.repeat(RANDOM_CHARS)}`;
}

/** When an id was made, in milliseconds since 1970. */
export function instantOfId(id: string): number {
  const text = id.slice(id.indexOf('_') + 1, id.indexOf('_') + 1 + TIME_CHARS);
  return Array.from(text).reduce((time, char) => time * 32 + ALPHABET.indexOf(char), 0);
}

/** The id of a request in all logs and in its reply: the one that the caller gave if well-formed, else a new one. */
export function requestIdFrom(given: unknown): string {
  return typeof given === 'string' && harmless.test(given) ? given : randomUUID();
}

/** What `createdBy` says of a form that a stranger made without a key. Else it is the id of a key, or `system`. */
export const KEYLESS_CREATOR = 'public';

/** Whether a form was made without a key: it may less, and what it causes counts against a stranger. */
export function isKeyless(form: { createdBy: string } | undefined): boolean {
  return form?.createdBy === KEYLESS_CREATOR;
}

/** The id of the form behind `POST /api/demo`, the only one that is not made at random. */
export const demoFormId = 'form_demo';

/** Several ids are made of each instant, so the last text is kept. */
function encodeTime(instant: number): string {
  const time = Math.floor(instant);
  if (time === encoded.time) return encoded.text;
  let text = '';
  for (let rest = time, n = 0; n < TIME_CHARS; n++) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  encoded = { time, text };
  return text;
}

let encoded = { time: Number.NaN, text: '' };

/**
 * Of an even number of characters. Each carries 5 random bits; 1,024 divides 65,536, so all pairs are equally likely.
 */
function randomText(length: number): string {
  const count = length / 2;
  if (used + count > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  let text = '';
  for (const end = used + count; used < end; used++) text += pairs[(pool[used] ?? 0) & 1023];
  return text;
}

/** Secure random numbers, each used once: asking for a few at a time costs more than making an id. */
const pool = new Uint16Array(2048);
let used = pool.length;

/** Crockford's base 32: sorts like the number, and has no letters that are taken for digits. */
export const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const pairs = Array.from(ALPHABET, (first) => Array.from(ALPHABET, (second) => first + second)).flat();

/** Request ids go into the log, so only these characters are accepted. */
const harmless = /^[\w.:-]{1,64}$/;

const TIME_CHARS = 10;
const RANDOM_CHARS = 16;
const SESSION_CHARS = 32;

/** 48 bits of milliseconds, the year 10889: what a ULID holds. */
const MAX_TIME = 2 ** 48 - 1;

/** The prefixes of ids that carry their time; session ids don't. */
const prefixes = ['form', 'ver', 'sub', 'wh', 'evt', 'dlv', 'att', 'key', 'prj', 'upl'] as const;

const shapes = new Map<string, RegExp>([
  ...prefixes.map((prefix) => [prefix, new RegExp(`^${prefix}_[0-7][${ALPHABET}]{25}$`)] as const),
  ['sess', new RegExp(`^sess_[${ALPHABET}]{${SESSION_CHARS}}$`)],
]);

export type IdPrefix = (typeof prefixes)[number];
