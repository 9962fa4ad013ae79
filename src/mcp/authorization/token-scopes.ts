import { isScope, type Scope, scopes } from '../../domain/scopes.ts';

/** Which scopes of this service a token holds, by each scope that its issuer gives it. */
export type TokenScopes = ReadonlyMap<string, readonly Scope[]>;

/**
 * Reads OAUTH_SCOPES: scopes that tokens may hold, comma-separated, each as `forms:read`, or as `Forms.Read=forms:read`
 * if the issuer has another name for it. Throws an error that names the one that can't be read.
 */
export function parseTokenScopes(text: string): TokenScopes {
  const parsed = new Map<string, Scope[]>();
  for (const part of text.split(',').map((each) => each.trim())) {
    const [, name = part, scope = part] = /^(.+)=([^=]+)$/.exec(part) ?? [];
    if (!isScope(scope))
      throw new Error(`expected scopes such as forms:read or Forms.Read=forms:read, not "${part}"`);
    if (!scopeToken.test(name)) throw new Error(`no issuer can give the scope "${name}"`);
    parsed.set(name, [...(parsed.get(name) ?? []), scope]);
  }
  return parsed;
}

/** The issuer's names of scopes of this service; those that it has none for are left out. */
export function namesOf(wanted: readonly Scope[], known: TokenScopes): string[] {
  const names = wanted.map(
    (scope) => [...known].find(([, held]) => held.includes(scope) || held.includes('*'))?.[0],
  );
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** What tokens hold only if the operator names it: what makes other credentials, and what mails others. */
const reserved: ReadonlySet<string> = new Set<string>(['*', 'keys:write', 'sessions:notify']);

/** If OAUTH_SCOPES is unset. */
export const defaultTokenScopes: TokenScopes = new Map(
  scopes.filter((scope) => !reserved.has(scope)).map((scope) => [scope, [scope]]),
);

/** RFC 6749, section 3.3, without what separates entries. */
const scopeToken = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/;
