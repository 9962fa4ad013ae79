/** What a key can be allowed to do. `*` is everything. */
export const scopes = [
  'forms:read',
  'forms:write',
  'forms:publish',
  'submissions:write',
  'submissions:read',
  'submissions:delete',
  'sessions:read',
  'sessions:write',
  'sessions:notify',
  'webhooks:read',
  'webhooks:write',
  'keys:write',
  'audit:read',
  '*',
] as const;

/** The project that the first key, and calls without one, belong to. Its `*` keys are the operator's. */
export const DEFAULT_PROJECT = 'default';

/** Whether a key with the scopes `held` may do what needs `needed`. */
export function holds(held: readonly string[], needed: Scope): boolean {
  return held.includes('*') || held.includes(needed);
}

/** Whether a key with the scopes `held` may give all of `wanted` to another: never more than it has. */
export function withinScopes(wanted: readonly Scope[], held: readonly string[]): boolean {
  return wanted.every((scope) => holds(held, scope));
}

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return scopes.some((scope) => scope === text);
}

export type Scope = (typeof scopes)[number];

/**
 * The scope that a key with the scopes `held` lacks to give a right over the answers of a form that was published;
 * undefined if it may. Nobody gives what they don't hold: scopes to change forms alone give none of these.
 */
export function lackedToGive(right: Right, held: readonly string[]): Scope | undefined {
  const { all = [], oneOf = [] } = needed[right];
  const missing = all.find((scope) => !holds(held, scope));
  if (missing !== undefined) return missing;
  return oneOf.length === 0 || oneOf.some((scope) => holds(held, scope)) ? undefined : oneOf[0];
}

/** Any one of these scopes is enough to give such a right, `*` included. */
export function scopesToGive(right: 'destination'): readonly Scope[] {
  return ['*', ...(needed[right].oneOf ?? [])];
}

/** Any one of these scopes is enough to have others notified. */
export const scopesToNotify: readonly Scope[] = ['*', 'sessions:notify'];

const needed: Record<Right, { all?: readonly Scope[]; oneOf?: readonly Scope[] }> = {
  /** An owner reads, exports and deletes the answers. */
  ownership: { all: ['submissions:read', 'submissions:delete'] },
  /** Where answers go: a webhook, or the mailboxes of further people. */
  destination: { oneOf: ['webhooks:write', 'submissions:read'] },
  /** A shorter retention deletes the answers that are older. */
  retention: { all: ['submissions:delete'] },
};

export type Right = 'ownership' | 'destination' | 'retention';
