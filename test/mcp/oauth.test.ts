import { createPublicKey } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scopes } from '../../src/domain/scopes.ts';
import { oneEngine } from '../support/database.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { startService, type TestService } from '../support/server.ts';
import { startAgent } from './agent.ts';

const toolsList = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const callOf = (name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

describe.each(oneEngine('postgres'))('access tokens at /mcp on %s', (engine) => {
  let issuer: Issuer;
  let service: TestService;
  let audience: string;
  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({ engine, env: { OAUTH_ISSUER: issuer.url } });
    audience = `${baseUrl(service)}/mcp`;
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await issuer?.[Symbol.asyncDispose]();
  });

  const token = (claims: object = {}, header: object = {}) =>
    issuer.sign({ aud: audience, scope: 'forms:read', ...claims }, header);

  it('open it with the scopes that they hold, and say who called', async () => {
    const key = await token({
      scope: 'openid forms:write forms:read unknown submissions:write submissions:read',
    });
    await using agent = await startAgent(service, { key });

    const definition = {
      name: 'A',
      slug: 'a',
      fields: [{ id: 'a', type: 'text' }],
      delivery: { type: 'email' },
    };
    const made = await agent.use('create_form', { definition });
    const { form, activation_token } = made.facts;
    await agent.use('activate_form', { form_id: form.id, activation_token, email: 'o@example.com' });
    const sent = await agent.use('submit_answers', { form_id: form.id, answers: { a: 'b' } });
    const read = await agent.use('get_submission', { submission_id: sent.facts.submission_id });
    const { json: audited } = await service.get('/v1/audit');

    expect(read.facts.provenance).toMatchObject({ a: { by: 'api', key_id: 'oauth:agent-7' } });
    expect(audited.entries.map(({ actor }: { actor: string }) => actor)).toContain('oauth:agent-7');
    expect(service.logged).toEqual([]);
  });

  it('wait for a session until it ends, without being a key', async () => {
    const form = await service.givenPublishedForm({ fields: [{ id: 'a', type: 'text' }] });
    await using agent = await startAgent(service, {
      key: await token({ scope: 'sessions:write sessions:read' }),
    });

    const { session_id } = (await agent.use('ask_person', { form_id: form.id })).facts;
    const waiting = agent.use('wait_for_session', { session_id, timeout: 30 });
    await service.post(`/v1/sessions/${session_id}/submit`, { answers: { a: 'b' } });

    expect((await waiting).facts).toMatchObject({ status: 'submitted' });
  });

  it('that end while a call waits get no answer', async () => {
    const form = await service.givenPublishedForm({ fields: [{ id: 'a', type: 'text' }] });
    const { json } = await service.post('/v1/sessions', { form_id: form.id });
    await using agent = await startAgent(service, {
      key: await token({ scope: 'sessions:read', exp: seconds(2) }),
    });

    const { failure } = await agent.use('wait_for_session', { session_id: json.session.id, timeout: 3 });

    expect(failure).toMatchObject({ reason: 'invalid_key', message: 'The access token has expired' });
  });

  it.each(scopes.filter((scope) => !['*', 'keys:write'].includes(scope)))(
    'give the tools that a key with %s has',
    async (scope) => {
      const held = [...new Set([scope, 'audit:read'])];

      const byKey = await send(service, toolsList, await service.givenKey(held));
      const byToken = await send(service, toolsList, await token({ scope: held.join(' ') }));

      expect(byToken.status).toBe(200);
      expect(byToken.tools).toEqual(byKey.tools);
    },
  );

  it.each([
    ['scope', { scope: 'forms:read' }],
    ['scp as a text', { scope: undefined, scp: 'forms:read' }],
    ['scp as a list', { scope: undefined, scp: ['forms:read'] }],
  ])('hold what %s says', async (_name, claims) => {
    expect((await send(service, toolsList, await token(claims))).tools).toContain('list_forms');
  });

  it('hold no * and no keys:write', async () => {
    const { status, tools } = await send(service, toolsList, await token({ scope: '* keys:write' }));

    expect(status).toBe(200);
    expect(tools).not.toContain('list_forms');
  });

  it('ask once under a key for each subject: another one that repeats the call gets its own session', async () => {
    const scope = 'sessions:write sessions:read';
    await using one = await startAgent(service, { key: await token({ scope }) });
    await using other = await startAgent(service, { key: await token({ scope, sub: 'another' }) });
    const question = { questions: [{ id: 'ok', label: 'May we?' }], idempotency_key: 'deploy 4.2' };

    const first = await one.use('ask_person', question);
    const again = await one.use('ask_person', question);
    const others = await other.use('ask_person', question);

    expect(first.facts.session_id).toMatch(/^sess_/);
    expect(again.facts.session_id).toBe(first.facts.session_id);
    expect(others.facts.session_id).toMatch(/^sess_/);
    expect(others.facts.session_id).not.toBe(first.facts.session_id);
  });

  it('are told apart: another subject may not go on with what the first began', async () => {
    const form = await service.givenPublishedForm({ fields: [{ id: 'a', type: 'text' }] });
    const scope = 'sessions:write sessions:read';
    const links = { capabilities: { elicitation: { url: {} } } };
    await using first = await startAgent(service, { ...links, key: await token({ scope }) });
    await using other = await startAgent(service, { ...links, key: await token({ scope, sub: 'another' }) });
    const params = { name: 'ask_person', arguments: { form_id: form.id } };
    const request = { method: 'tools/call' as const, params };

    const asked = await first.client.request(request, { allowInputRequired: true });
    const { requestState = '' } = asked as { requestState?: string };
    const repeat = other.client.request(
      { ...request, params: { ...params, requestState, inputResponses: { answers: { action: 'decline' } } } },
      { allowInputRequired: true },
    );

    await expect(repeat).rejects.toThrow('Invalid or expired requestState');
  });

  it.each<[string, object, object, string]>([
    ['that have expired', { exp: seconds(-60) }, {}, 'expired'],
    ['that are not valid yet', { nbf: seconds(300) }, {}, 'nbf'],
    ['without an end', { exp: undefined }, {}, 'exp'],
    ['that end after the year 9999', { exp: 253_402_300_800 }, {}, 'year 9999'],
    ['that end after all time', { exp: 1e300 }, {}, 'year 9999'],
    ['without a subject', { sub: undefined }, {}, 'sub'],
    ['whose subject is no name', { sub: 'a b' }, {}, 'subject'],
    ['for another service', { aud: 'https://other.example/mcp' }, {}, 'audience'],
    ['for the service but not for /mcp', { aud: 'http://127.0.0.1' }, {}, 'audience'],
    ['for nobody', { aud: undefined }, {}, 'audience'],
    ['of another issuer', { iss: 'https://evil.example' }, {}, 'issuer'],
    ['of this issuer with a slash', { iss: 'SLASH' }, {}, 'issuer'],
    ['that show who signed in', { nonce: 'n' }, {}, 'ID token'],
    ['that end sessions', {}, { typ: 'logout+jwt' }, 'logout+jwt'],
    ['that are bound to a key', { cnf: { jkt: 'x' } }, {}, 'bound to a key'],
  ])('are refused %s', async (_name, claims, header, words) => {
    const bad = 'iss' in claims && claims.iss === 'SLASH' ? { iss: `${issuer.url}/` } : claims;

    const reply = await send(service, toolsList, await token(bad, header));

    expectRefused(reply, words);
  });

  it('are refused with tricks of the algorithm', async () => {
    const [published = { kid: '' }] = issuer.server.issuer.keys.toJSON();
    const pem = createPublicKey({ key: published, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    const claims = { iss: issuer.url, aud: audience, sub: 'agent-7', scope: 'forms:read', exp: seconds(60) };
    const own = await generateKeyPair('RS256', { extractable: true });
    const jwk = await exportJWK(own.publicKey);
    const signed = (header: object, key: Parameters<SignJWT['sign']>[0], alg: string) =>
      new SignJWT(claims).setProtectedHeader({ alg, ...header }).sign(key);
    const good = await token();
    const [head = '', body = ''] = good.split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none', kid: published.kid })).toString('base64url');

    const tricks = {
      'an HMAC by the public key': await signed({ kid: published.kid }, Buffer.from(pem), 'HS256'),
      'no signature': `${none}.${body}.`,
      'the signature left out': `${head}.${body}.`,
      'a key of its own in the header': await signed({ jwk }, own.privateKey, 'RS256'),
      'a key of its own under a known name': await signed({ kid: published.kid }, own.privateKey, 'RS256'),
      'a key of its own under an unknown name': await signed({ kid: 'x' }, own.privateKey, 'RS256'),
      'keys of its own elsewhere': await signed({ jku: 'http://127.0.0.1/k' }, own.privateKey, 'RS256'),
      'another body': `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${good.split('.')[2]}`,
    };

    for (const [trick, forgery] of Object.entries(tricks)) {
      const reply = await send(service, toolsList, forgery);
      expect([trick, reply.status]).toEqual([trick, 401]);
      expectRefused(reply, 'verified');
    }
    expect((await send(service, toolsList, good)).status).toBe(200);
  });

  it('are asked for, with where to get them', async () => {
    const none = await send(service, toolsList);
    const wrong = await send(service, toolsList, 'hfs_wrong');
    const url = /resource_metadata="([^"]+)"/.exec(none.challenge)?.[1] ?? '';
    const metadata = await fetch(url);
    const root = await fetch(`${service.url}/.well-known/oauth-protected-resource`);

    const where = `resource_metadata="${baseUrl(service)}/.well-known/oauth-protected-resource/mcp"`;
    expect([none.status, none.challenge]).toEqual([401, `Bearer ${where}`]);
    expect([wrong.status, wrong.challenge]).toEqual([401, `Bearer error="invalid_token", ${where}`]);
    expect(metadata.headers.get('access-control-allow-origin')).toBe('*');
    expect(await metadata.json()).toMatchObject({
      resource: audience,
      authorization_servers: [issuer.url],
      scopes_supported: scopes.filter((scope) => !['*', 'keys:write', 'sessions:notify'].includes(scope)),
      bearer_methods_supported: ['header'],
    });
    expect(await root.json()).toMatchObject({ resource: audience });
  });

  it('say which scopes a tool needs that they lack, to ask the issuer for', async () => {
    const lacking = await send(service, callOf('list_submissions', { form_id: 'form_x' }), await token());
    const unknown = await send(service, callOf('no_such_tool'), await token());

    expect(lacking.status).toBe(403);
    expect(lacking.challenge).toMatch(
      /^Bearer error="insufficient_scope", scope="forms:read submissions:read", resource_metadata="/,
    );
    expect(unknown.status).toBe(200);
  });

  it('are nothing where no issuer is named', async () => {
    await using without = await startService({ engine });

    const reply = await send(without, toolsList, await token());
    const metadata = await fetch(`${without.url}/.well-known/oauth-protected-resource/mcp`);

    expect([reply.status, reply.challenge]).toEqual([401, 'Bearer error="invalid_token"']);
    expect(metadata.status).toBe(404);
  });
});

describe('OAUTH_SCOPES, OAUTH_AUDIENCE and OAUTH_PROJECT', () => {
  it('name scopes as the issuer does, the audience, and where tokens act', async () => {
    await using issuer = await startIssuer();
    await using service = await startService({
      env: {
        OAUTH_ISSUER: issuer.url,
        OAUTH_AUDIENCE: 'api://forms',
        OAUTH_PROJECT: 'agents',
        OAUTH_SCOPES: 'Forms.Read=forms:read, Forms.Read=sessions:read, admin=*',
      },
    });
    const token = (scope: string) => issuer.sign({ aud: 'api://forms', scope });
    await service.givenPublishedForm({ fields: [{ id: 'a', type: 'text' }] });

    const read = await send(service, toolsList, await token('Forms.Read'));
    const ours = await send(service, toolsList, await token('forms:read'));
    const admin = await send(service, toolsList, await token('admin'));
    const forms = await send(service, callOf('list_forms'), await token('admin'));
    const lacking = await send(service, callOf('create_form'), await token('Forms.Read'));

    expect(read.tools).toEqual(expect.arrayContaining(['list_forms', 'get_session']));
    expect(read.tools).not.toContain('create_form');
    expect(ours.tools).not.toContain('list_forms');
    expect(admin.tools).toContain('create_form');
    expect(forms.text).toContain('\\"forms\\":[]');
    expect(lacking.challenge).toContain('scope="Forms.Read admin"');
  });
});

describe('an issuer that is out of reach', () => {
  it('is told apart from a wrong token, is asked again, and keys go on working', async () => {
    const issuer = await startIssuer();
    const { port } = issuer.server.address();
    const token = await issuer.sign({ aud: 'x', scope: 'forms:read' });
    await issuer[Symbol.asyncDispose]();
    let time = Date.now();
    await using service = await startService({
      env: { OAUTH_ISSUER: issuer.url, OAUTH_AUDIENCE: 'x' },
      now: () => time,
    });

    const away = await send(service, toolsList, token);
    const byKey = await send(service, toolsList, service.key);
    await issuer.server.start(port, '127.0.0.1');
    issuer.server.issuer.url = issuer.url;
    const soon = await send(service, toolsList, token);
    time += 11_000;
    const back = await send(service, toolsList, token);
    await issuer.server.stop();

    expect([away.status, byKey.status, soon.status, back.status]).toEqual([503, 200, 503, 200]);
    expect(service.logged.join()).toContain('Could not read the keys of OAUTH_ISSUER');
    expect(service.logged.join()).toContain('The connection was refused');
    expect(service.logged.join()).not.toContain(token);
  });
});

function baseUrl({ url }: TestService): string {
  return url.replace('localhost', '127.0.0.1');
}

function seconds(fromNow: number): number {
  return Math.floor(Date.now() / 1000) + fromNow;
}

async function send({ url }: TestService, body: object, credential?: string) {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate') ?? '',
    text,
    tools: [...text.matchAll(/"name":"([a-z_]+)","title"/g)].map(([, name]) => name),
  };
}

function expectRefused({ status, challenge, text }: Awaited<ReturnType<typeof send>>, words: string): void {
  const { error } = JSON.parse(text);
  expect([status, error.data.reason]).toEqual([401, 'invalid_key']);
  expect(error.message).toContain(words);
  expect(challenge).toMatch(/^Bearer error="invalid_token", resource_metadata="/);
}
