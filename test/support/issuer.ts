import { OAuth2Server } from 'oauth2-mock-server';

/** An OpenID provider on loopback that publishes its keys and signs access tokens. */
export async function startIssuer(): Promise<Issuer> {
  const server = new OAuth2Server();
  const [key] = await Promise.all(['RS256', 'ES256'].map((alg) => server.issuer.keys.generate(alg)));
  await server.start(0, '127.0.0.1');
  const url = `http://127.0.0.1:${server.address().port}`;
  server.issuer.url = url;
  return {
    url,
    server,
    sign: (claims, header = {}) =>
      server.issuer.buildToken({
        kid: key?.kid,
        scopesOrTransform(own, payload) {
          Object.assign(own, header);
          Object.assign(payload, { sub: 'agent-7' }, claims);
        },
      }),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

export type Issuer = AsyncDisposable & {
  url: string;
  server: OAuth2Server;
  /** A token for an hour, with these claims over `iss`, `iat`, `nbf`, `exp` and `sub`. */
  sign: (claims: object, header?: object) => Promise<string>;
};
