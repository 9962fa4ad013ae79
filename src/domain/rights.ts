import { holds, type Scope } from './scopes.ts';

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

const needed: Record<Right, { all?: readonly Scope[]; oneOf?: readonly Scope[] }> = {
  /** An owner reads, exports and deletes the answers. */
  ownership: { all: ['submissions:read', 'submissions:delete'] },
  /** Where answers go: a webhook, or the mailboxes of further people. */
  destination: { oneOf: ['webhooks:write', 'submissions:read'] },
  /** A shorter retention deletes the answers that are older. */
  retention: { all: ['submissions:delete'] },
};

export type Right = 'ownership' | 'destination' | 'retention';
