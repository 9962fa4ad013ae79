import { pathOf, type Violation } from '../errors/violations.ts';
import { MAX_PROBLEMS } from '../limits/limits.ts';
import { inexactMessage, isInexact } from './json.ts';

/**
 * What is wrong with a text, or undefined: it must be well-formed Unicode without NUL.
 *
 * PostgreSQL stores neither, and one such text would fail a whole group of rows.
 */
export function textProblem(text: string): string | undefined {
  if (!text.isWellFormed()) return 'Expected well-formed Unicode: there is half of a surrogate pair';
  if (text.includes('\0')) return 'Expected text without the character NUL';
  return undefined;
}

/**
 * What is wrong with the texts, numbers, keys and depth of any JSON value; `path` is put before each place. JSON can't
 * say NaN, and what it says of a number can be too large for one. `exact`: whole numbers must be exact, too. `maxKib`:
 * how large the value may be as JSON. `maxMembers`: how many a list or object may have, before those are looked at.
 *
 * Never throws: it does not recurse, calls no method of the value, stops at what is too deep (and so at
 * circles), and returns a hundred problems at most.
 */
export function jsonProblems(
  value: unknown,
  path: string,
  { exact = false, maxKib = Number.POSITIVE_INFINITY, maxMembers = Number.POSITIVE_INFINITY } = {},
): Violation[] {
  const violations: Violation[] = [];
  const waiting: Place[] = [{ value, path: () => path, depth: 1 }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (violations.length >= MAX_PROBLEMS) break;
    if (typeof place.value === 'string') report(violations, place.path, textProblem(place.value));
    if (typeof place.value === 'number' && !Number.isFinite(place.value)) {
      violations.push({ path: place.path(), code: 'invalid_type', message: 'Expected a finite number' });
    }
    if (exact && typeof place.value === 'number' && isInexact(place.value)) {
      violations.push({ path: place.path(), code: 'invalid_type', message: inexactMessage });
    }
    if (typeof place.value !== 'object' || place.value === null) continue;
    if (place.depth > MAX_DEPTH) {
      report(violations, place.path, `Expected JSON at most ${MAX_DEPTH} deep`);
      continue;
    }
    const members = Object.entries(place.value);
    if (members.length > maxMembers) {
      const message = `Expected at most ${maxMembers} items or properties`;
      violations.push({ path: place.path(), code: 'too_big', message });
      continue;
    }
    const inside: Place[] = [];
    const { path: within } = place;
    for (const [key, child] of members) {
      const childPath = () => pathOf(within(), key);
      report(violations, childPath, textProblem(key));
      inside.push({ value: child, path: childPath, depth: place.depth + 1 });
    }
    for (const child of inside.reverse()) waiting.push(child);
  }
  const isMeasured = violations.length === 0 && maxKib < Number.POSITIVE_INFINITY;
  if (!isMeasured || Buffer.byteLength(JSON.stringify(value)) <= maxKib * 1024) return violations;
  return [{ path, code: 'too_big', message: `Expected at most ${maxKib} KiB as JSON` }];
}

function report(violations: Violation[], path: () => string, message: string | undefined): void {
  if (message !== undefined) violations.push({ path: path(), code: 'custom', message });
}

/** How deep JSON may nest; functions that read it may recurse that far. */
export const MAX_DEPTH = 32;

/** `path` is made where something is wrong: there can be tens of thousands of places. */
type Place = { value: unknown; path: () => string; depth: number };

/**
 * Whether JSON text, as UTF-8 bytes, holds more than `maxNodes` values, or else nests more than `maxDepth` deep, so
 * that it can be refused before objects are made of it. Property names don't count. Text that is not JSON gives
 * some answer: its parser refuses it.
 */
export function scanJson(json: Uint8Array, { maxNodes, maxDepth }: NodeLimits): JsonScan {
  let nodes = 1;
  let members = 0;
  let hasLongInteger = false;
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = endOfString(json, at);
    } else if (byte === COMMA) {
      nodes += 1;
    } else if (byte === COLON) {
      members += 1;
    } else if (isDigit(byte)) {
      const start = at;
      while (isDigit(json[at + 1])) at += 1;
      if (at - start >= LONG_DIGITS - 1) hasLongInteger = true;
    } else if (byte === BRACKET || byte === BRACE) {
      if (!closesNext(json, at)) nodes += 1;
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) {
      depth -= 1;
    }
    if (nodes > maxNodes) return { excess: 'nodes', members, hasLongInteger };
  }
  return { excess: deepest > maxDepth ? 'depth' : undefined, members, hasLongInteger };
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** Whole numbers with as many are written with exponents once they are read. */
const LONG_DIGITS = 22;

/** The place of the quote that ends the string which begins at `start`. */
function endOfString(json: Uint8Array, start: number): number {
  for (let at = json.indexOf(QUOTE, start + 1); at >= 0; at = json.indexOf(QUOTE, at + 1)) {
    let escapes = 0;
    while (json[at - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}

/** Whether the array or object that opens here is empty: what follows is then no value of its own. */
function closesNext(json: Uint8Array, open: number): boolean {
  let at = open + 1;
  while (whitespace.has(json[at] ?? 0)) at += 1;
  return json[at] === (json[open] === BRACKET ? CLOSING_BRACKET : CLOSING_BRACE);
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [BRACKET, CLOSING_BRACKET, BRACE, CLOSING_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
const whitespace = new Set([0x20, 0x09, 0x0a, 0x0d]);

export type NodeLimits = { maxNodes: number; maxDepth: number };

export type JsonScan = {
  excess: Excess | undefined;
  /** The members of all objects. */
  members: number;
  /** Whether there may be a whole number of `LONG_DIGITS`. */
  hasLongInteger: boolean;
};

/** What there is too much of. */
export type Excess = 'nodes' | 'depth';
