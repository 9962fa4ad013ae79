import { pathOf, type Violation } from '../errors/violations.ts';

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
 * say NaN, and what it says of a number can be too large for one.
 *
 * Never throws: it does not recurse, calls no method of the value, stops at what is too deep (and so at
 * circles), and returns a hundred problems at most.
 */
export function jsonProblems(value: unknown, path: string): Violation[] {
  const violations: Violation[] = [];
  const waiting: Place[] = [{ value, path, depth: 1 }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (violations.length >= MAX_PROBLEMS) break;
    if (typeof place.value === 'string') report(violations, place.path, textProblem(place.value));
    if (typeof place.value === 'number' && !Number.isFinite(place.value)) {
      violations.push({ path: place.path, code: 'invalid_type', message: 'Expected a finite number' });
    }
    if (typeof place.value !== 'object' || place.value === null) continue;
    if (place.depth > MAX_DEPTH) {
      report(violations, place.path, `Expected JSON at most ${MAX_DEPTH} deep`);
      continue;
    }
    const inside: Place[] = [];
    for (const [key, child] of Object.entries(place.value)) {
      const childPath = pathOf(place.path, key);
      report(violations, childPath, textProblem(key));
      inside.push({ value: child, path: childPath, depth: place.depth + 1 });
    }
    for (const child of inside.reverse()) waiting.push(child);
  }
  return violations;
}

function report(violations: Violation[], path: string, message: string | undefined): void {
  if (message !== undefined) violations.push({ path, code: 'custom', message });
}

/** How deep JSON may nest; functions that read it may recurse that far. */
export const MAX_DEPTH = 32;

const MAX_PROBLEMS = 100;

type Place = { value: unknown; path: string; depth: number };
