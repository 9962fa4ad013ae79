import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../errors/failure.ts';
import { pathOf } from '../errors/violations.ts';
import type { Json } from './json.ts';
import { type JsonScan, MAX_DEPTH, scanJson } from './json-problems.ts';

/**
 * Reads JSON that a caller sent, of every protocol. `what` it is, such as `body`, is named in errors.
 *
 * `isTooDeep`: it nests deeper than functions that recurse may go. A whole number too long for any that is exact
 * becomes infinite, so that `jsonProblems` and the checks of fields refuse it at its place; shorter ones say
 * themselves that they are inexact, see `isInexact`. Throws a failure for more than `maxNodes` values, for what is
 * not JSON, and for an object with a key twice.
 */
export function parseJson(
  bytes: Buffer,
  what: string,
  maxNodes: number,
): { value: Json; isTooDeep: boolean } {
  const scan = scanJson(bytes, { maxNodes, maxDepth: MAX_DEPTH });
  if (scan.excess === 'nodes')
    throw failed(Reason.TOO_LARGE, `The ${what} holds more than ${maxNodes} values`);
  if (!isUtf8(bytes)) throw failed(Reason.BAD_REQUEST, `The ${what} is not UTF-8`);
  const decoded = bytes.toString('utf8');
  const text = decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded;
  const value = parse(text, what, scan);
  const isTooDeep = scan.excess === 'depth';
  if (!isTooDeep && membersIn(value) !== scan.members) throw duplicate(text, what);
  return { value, isTooDeep };
}

function parse(text: string, what: string, { hasLongInteger }: JsonScan): Json {
  try {
    return hasLongInteger ? JSON.parse(text, withoutLongIntegers) : JSON.parse(text);
  } catch (error) {
    const cause = new NotJson(error);
    const place = cause.line === undefined ? '' : `: see line ${cause.line}, column ${cause.column}`;
    const said = cause.kind === 'end' ? ': it ends too early' : place;
    throw failed(Reason.BAD_REQUEST, `The ${what} is not JSON${said}`, { cause });
  }
}

function withoutLongIntegers(_key: string, value: Json, { source = '' }: { source?: string } = {}): Json {
  const isLong = typeof value === 'number' && /^-?\d{22,}$/.test(source);
  return isLong ? Number.POSITIVE_INFINITY : value;
}

/** How and where a text stops being JSON, as far as the parser says so. The rest of its message may quote the text. */
export class NotJson extends Error {
  readonly kind: 'end' | 'token' | 'other';
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(error: unknown) {
    const said = error instanceof Error ? error.message : '';
    super('Not JSON');
    this.kind = said.startsWith('Unexpected end')
      ? 'end'
      : said.startsWith('Unexpected token')
        ? 'token'
        : 'other';
    const place = /\(line (\d+) column (\d+)\)$/.exec(said);
    if (place !== null) [this.line, this.column] = place.slice(1).map(Number);
  }
}

/** The line where a text stops being JSON: the parser does not say where a character is that it does not expect. */
export function brokenLine(text: string): number {
  let begun = 0;
  let broken = text.length;
  while (begun + 1 < broken) {
    const middle = (begun + broken) >> 1;
    if (isUnexpected(text.slice(0, middle))) broken = middle;
    else begun = middle;
  }
  return text.slice(0, broken).split('\n').length;
}

function isUnexpected(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return new NotJson(error).kind === 'token';
  }
}

/** The members of all objects in a value; the parser has dropped those whose key came again. */
function membersIn(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inside = Object.values(value);
  let count = Array.isArray(value) ? 0 : inside.length;
  for (const each of inside) if (typeof each === 'object') count += membersIn(each);
  return count;
}

function duplicate(text: string, what: string) {
  const path = duplicatePath(text);
  const violations = [{ path, code: 'custom' as const, message: 'Given twice' }];
  return failed(Reason.BAD_REQUEST, `The ${what} has a key twice: ${path}`, { violations });
}

/** Where a key comes for the second time in its object. The text is JSON. */
function duplicatePath(text: string): string {
  return placesOf(text).find(({ isAgain }) => isAgain)?.path ?? '';
}

/**
 * The lines of a JSON text by the dotted paths of what is in it, from 1: of a property the line of its key, of an item
 * the one where it begins. Of a key that comes twice, the second. They end where it
 * nests too deep.
 */
export function linesIn(text: string): Map<string, number> {
  const lines = new Map([['', 1]]);
  let line = 1;
  let from = 0;
  for (const { path, at } of placesOf(text)) {
    line += text.slice(from, at).split('\n').length - 1;
    from = at;
    lines.set(path, line);
  }
  return lines;
}

/** Each key and each item of a JSON text, in order. */
function* placesOf(text: string): Generator<{ path: string; at: number; isAgain: boolean }> {
  const open: { path: string; keys: Set<string>; key: string | number }[] = [];
  for (const { token, isKey, at, next } of tokensOf(text)) {
    if (open.length > MAX_DEPTH) return;
    const top = open.at(-1);
    const path = top === undefined ? '' : pathOf(top.path, String(top.key));
    if (token === '{' || token === '[') open.push({ path, keys: new Set(), key: token === '[' ? 0 : '' });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && typeof top?.key === 'number') top.key += 1;
    else if (isKey && top !== undefined) {
      const key = String(JSON.parse(token));
      top.key = key;
      yield { path: pathOf(top.path, key), at, isAgain: top.keys.has(key) };
      top.keys.add(key);
    }
    const list = open.at(-1);
    const begins = token === '[' || token === ',';
    if (begins && typeof list?.key === 'number')
      yield { path: pathOf(list.path, String(list.key)), at: next, isAgain: false };
  }
}

/** Each string and sign of a JSON text, whether a string is a key, and where what follows begins. */
function* tokensOf(text: string): Generator<{ token: string; isKey: boolean; at: number; next: number }> {
  const tokens = /("(?:[^"\\]|\\(?:.|$))*(?:"|$))(\s*:)?|[{}[\],]\s*/gs;
  for (const { 0: whole, 1: string, 2: colon, index: at } of text.matchAll(tokens)) {
    yield { token: string ?? whole.charAt(0), isKey: colon !== undefined, at, next: at + whole.length };
  }
}

const BYTE_ORDER_MARK = '\uFEFF';

/** Canonical JSON (RFC 8785): equal values give equal texts. Throws on what JSON can't say. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('Not a JSON value');
  return text;
}

/** The SHA-256 of a value's canonical JSON, in hex: equal for equal definitions, and for a repeated request. */
export function fingerprint(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
