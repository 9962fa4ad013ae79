import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
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
function namesOf(wanted: readonly Scope[], known: TokenScopes): string[] {
  const names = wanted.map(
    (scope) => [...known].find(([, held]) => held.includes(scope) || held.includes('*'))?.[0],
  );
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** What tokens hold only if the operator names it: what makes other credentials, and what emails others. */
const reserved: ReadonlySet<string> = new Set<string>(['*', 'keys:write', 'sessions:notify']);

/** If OAUTH_SCOPES is unset. */
export const defaultTokenScopes: TokenScopes = new Map(
  scopes.filter((scope) => !reserved.has(scope)).map((scope) => [scope, [scope]]),
);

/** RFC 6749, section 3.3, without what separates entries. */
const scopeToken = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/;

/** Where clients look for the metadata of `/mcp` (RFC 9728, section 3.1), and of a service that has nothing else. */
export const metadataPaths = [
  '/.well-known/oauth-protected-resource/mcp',
  '/.well-known/oauth-protected-resource',
];

/** What tells a client which issuer gives access tokens for `/mcp`, and with which scopes. */
export function describeResource(baseUrl: string, { issuer, scopes }: TokenIssuer): object {
  return {
    resource: `${baseUrl}/mcp`,
    authorization_servers: [issuer],
    scopes_supported: [...scopes.keys()],
    bearer_methods_supported: ['header'],
    resource_name: 'Headless form service',
    resource_documentation: `${baseUrl}/llms.txt`,
  };
}

/** A challenge of `WWW-Authenticate` that says where the metadata is, too. */
export function withMetadata(challenge: string, baseUrl: string): string {
  const metadata = `resource_metadata="${baseUrl}${metadataPaths[0]}"`;
  return `${challenge}${challenge.includes('=') ? ',' : ''} ${metadata}`;
}

/**
 * The failure of a call for which an access token lacks scopes: the client can ask its issuer for a token with those
 * and with what this one has. Undefined if no token can hold them.
 */
export function insufficientToken(
  lacked: readonly Scope[],
  held: readonly string[],
  { scopes }: TokenIssuer,
) {
  const names = namesOf(lacked, scopes);
  if (names.length === 0) return undefined;
  const own = [...scopes].flatMap(([name, given]) =>
    given.every((scope) => held.includes(scope)) ? [name] : [],
  );
  const message = `The access token lacks the scope ${names.join(' ')}`;
  return failed(Reason.INSUFFICIENT_SCOPE, message, { requiredScope: [...own, ...names].join(' ') });
}

/** Whose access tokens work, and which scopes they can hold. */
export type TokenIssuer = { issuer: string; scopes: TokenScopes };
