/** Any JSON value. */
export type Json = JsonScalar | Json[] | { [key: string]: Json };

/** A JSON value that holds no other. */
export type JsonScalar = string | number | boolean | null;

/** A JSON object. Keys come from callers: look them up with `Object.hasOwn` only. */
export type JsonObject = { [key: string]: Json };

/** Whether a value is an object in the sense of JSON: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
