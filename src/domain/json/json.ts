/** Any JSON value. */
export type Json = JsonScalar | Json[] | { [key: string]: Json };

/** A JSON value that holds no other. */
export type JsonScalar = string | number | boolean | null;

/** A JSON object. Keys come from callers: look them up with `ownValue` or `Object.hasOwn` only. */
export type JsonObject = { [key: string]: Json };

/** Whether a value is an object in the sense of JSON: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What an object holds by a key of a caller; undefined if it is no key of its own, as `constructor` is none. */
export function ownValue<T>(object: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Whether a value is a string, a finite number, a boolean or null. */
export function isScalar(value: unknown): value is JsonScalar {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}

/** The characters of a text: code points, as JSON Schema counts. */
export function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

/** Whether a whole number may stand for another one: JSON and doubles hold those up to 2^53 - 1 exactly. */
export function isInexact(number: number): boolean {
  const size = Math.abs(number);
  return Number.isInteger(number) && size > Number.MAX_SAFE_INTEGER && size < LEAST_IN_EXPONENTS;
}

/** From here on numbers are written with exponents, as what they are: not exact. */
export const LEAST_IN_EXPONENTS = 1e21;

/** What is said of one. */
export const inexactMessage = `Expected whole numbers up to ${Number.MAX_SAFE_INTEGER}, which are exact`;
