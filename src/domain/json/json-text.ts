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
 * `isTooDeep`: it nests deeper than functions that recurse may go. A whole number too long for any that is exact becomes
 * infinite, so that `jsonProblems` and the checks of fields refuse it at its place; shorter ones say themselves that they
 * are inexact, see `isInexact`. Throws a failure for more than `maxNodes` values, for what is not JSON, and for an object
 * with a key twice.
 */
export function readJson(bytes: Buffer, what: string, maxNodes: number): { value: Json; isTooDeep: boolean } {
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
    throw failed(Reason.BAD_REQUEST, `The ${what} is not JSON${placeOf(error)}`);
  }
}

function withoutLongIntegers(_key: string, value: Json, { source = '' }: { source?: string } = {}): Json {
  const isLong = typeof value === 'number' && /^-?\d{22,}$/.test(source);
  return isLong ? Number.POSITIVE_INFINITY : value;
}

/** Where a text stops being JSON, as far as the parser says so. The rest of its message may quote the text. */
function placeOf(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('Unexpected end')) return ': it ends too early';
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
  return line === undefined ? '' : `: see line ${line}, column ${column}`;
}

/** The members of all objects in a value, of which the parser has dropped those whose key came again. */
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
  const open: { path: string; keys: Set<string>; key: string | number }[] = [];
  for (const [token, after] of tokensOf(text)) {
    const top = open.at(-1);
    const path = top === undefined ? '' : pathOf(top.path, String(top.key));
    if (token === '{' || token === '[') open.push({ path, keys: new Set(), key: token === '[' ? 0 : '' });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && typeof top?.key === 'number') top.key += 1;
    else if (after && top !== undefined) {
      const key = String(JSON.parse(token));
      top.key = key;
      if (top.keys.has(key)) return pathOf(top.path, key);
      top.keys.add(key);
    }
  }
  return '';
}

/** Each string and sign of a JSON text, and whether a string is a key. */
function* tokensOf(text: string): Generator<[token: string, isKey: boolean]> {
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\],]/gs;
  for (const [sign, string, colon] of text.matchAll(token)) yield [string ?? sign, colon !== undefined];
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
