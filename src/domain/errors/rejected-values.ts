import { isObject, isScalar } from '../json/json.ts';
import { kindOf, type Violation, valueAt } from './violations.ts';

/** The violations with what came at their paths in `input`, which are dotted. */
export function withReceived<V extends Located>(violations: readonly V[], input: unknown): V[] {
  return violations.map((violation) => {
    if (violation.received !== undefined) return violation;
    const received = describeReceived(violation.path, valueAt(input, partsOf(violation.path)));
    return received === '' ? violation : { ...violation, received };
  });
}

/**
 * Tells the sender of a value what came: a scalar as JSON, cut to a readable length. Of lists and objects, and of what
 * may be a secret by its path or its looks, it tells the type alone. Empty if nothing came.
 */
export function describeReceived(path: string, value: unknown): string {
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (isObject(value)) return 'object';
  if (typeof value !== 'string') return isScalar(value) ? String(value) : '';
  const isSecret = secretName.test(nameIn(path)) || secretText.test(value.slice(0, MAX_SEARCHED));
  if (path === '' || isSecret) return kindOf(value);
  if (value.length <= MAX_SHOWN) return JSON.stringify(value.toWellFormed());
  const start = JSON.stringify(value.slice(0, MAX_SHOWN).toWellFormed()).slice(0, -1);
  return `${start}…" (string of ${value.length} characters)`;
}

function partsOf(path: string): string[] {
  return path === '' ? [] : path.split('.');
}

/** The name of what is at a path: `scopes[0]` and `answers.token.0` are named by their lists. */
function nameIn(path: string): string {
  return path.split(/[.[\]]/).findLast((part) => !/^\d*$/.test(part)) ?? '';
}

/** Fields of forms can be called so, too. */
const secretName =
  /secret|token|passw|passphrase|pin$|api.?key|authori[sz]ation|credential|session.?id|cvc|cvv/i;

/** Keys of this service and its sessions, signing secrets, and addresses with a password. */
const secretText = /\b(?:hfs|sess|whsec)_|^[a-z][a-z0-9+.-]*:\/*[^/?#]*@/i;

/** Of a text, in characters. */
const MAX_SHOWN = 60;

/** Longer than the part of an address that has a password. */
const MAX_SEARCHED = 2_048;

type Located = Pick<Violation, 'path' | 'received'>;
