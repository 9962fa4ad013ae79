/** What a key can be allowed to do. `*` is everything. */
export const scopes = [
  'forms:read',
  'forms:write',
  'submissions:write',
  'submissions:read',
  'submissions:delete',
  'sessions:read',
  'sessions:write',
  'webhooks:read',
  'webhooks:write',
  'keys:write',
  'audit:read',
  '*',
] as const;

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
