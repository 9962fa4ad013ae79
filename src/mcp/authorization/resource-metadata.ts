import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import type { Scope } from '../../domain/scopes.ts';
import { namesOf, type TokenScopes } from './token-scopes.ts';

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
