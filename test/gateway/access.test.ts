import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { routes } from '../../src/gateway/router.ts';
import { startAgent } from '../mcp/agent.ts';
import { oneEngine } from '../support/database.ts';
import { startIssuer } from '../support/issuer.ts';
import { keyOf } from '../support/openapi.ts';
import { anyone, deniedAs } from '../support/replies.ts';
import { type CallOptions, startService, type TestService } from '../support/server.ts';
import { examples } from './examples.ts';

/** Method, path and scope of every route that needs a key, as the interface's section 4 and its decisions say. */
const guarded: [string, string, string, 'opens' | 'stays shut'][] = [
  ['POST', '/v1/forms/validate', 'forms:read', 'opens'],
  ['POST', '/v1/forms/:form/submissions', 'submissions:write', 'opens'],
  ['GET', '/v1/forms/:form/submissions', 'submissions:read', 'stays shut'],
  ['GET', '/v1/submissions/:submission', 'submissions:read', 'stays shut'],
  ['GET', '/v1/forms/:form/agent-schema', 'forms:read', 'opens'],
  ['POST', '/v1/forms/:form/sessions', 'sessions:write', 'opens'],
  ['GET', '/v1/sessions/:session', 'sessions:read', 'opens'],
  ['PATCH', '/v1/sessions/:session', 'sessions:write', 'opens'],
  ['POST', '/v1/sessions/:session/submit', 'sessions:write', 'opens'],
  ['POST', '/v1/webhooks', 'webhooks:write', 'opens'],
  ['GET', '/v1/webhooks', 'webhooks:read', 'opens'],
  ['GET', '/v1/webhooks/:webhook', 'webhooks:read', 'opens'],
  ['GET', '/v1/webhooks/:webhook/deliveries', 'webhooks:read', 'opens'],
  ['POST', '/v1/webhook-deliveries/:delivery/replay', 'webhooks:write', 'opens'],
  ['PATCH', '/v1/webhooks/:webhook', 'webhooks:write', 'stays shut'],
  ['POST', '/v1/webhooks/:webhook/rotate-secret', 'webhooks:write', 'stays shut'],
  ['POST', '/v1/webhooks/:webhook/test', 'webhooks:write', 'stays shut'],
  ['POST', '/v1/webhooks/:webhook/replay', 'webhooks:write', 'stays shut'],
  ['GET', '/v1/forms/:form/sessions', 'sessions:read', 'stays shut'],
  ['GET', '/v1/sessions/:session/agent-schema', 'sessions:read', 'stays shut'],
  // Of questions of its own, as the example asks.
  ['POST', '/v1/sessions', 'sessions:write', 'stays shut'],
  ['POST', '/v1/sessions/:session/decline', 'sessions:write', 'stays shut'],
  ['POST', '/v1/sessions/:session/cancel', 'sessions:write', 'stays shut'],
  ['GET', '/v1/forms', 'forms:read', 'stays shut'],
  ['GET', '/v1/forms/:form', 'forms:read', 'stays shut'],
  ['PATCH', '/v1/forms/:form', 'forms:write', 'stays shut'],
  ['PUT', '/v1/forms/by-key/:key', 'forms:publish', 'stays shut'],
  ['POST', '/v1/forms/:form/versions', 'forms:write', 'stays shut'],
  ['GET', '/v1/forms/:form/versions', 'forms:read', 'stays shut'],
  ['GET', '/v1/forms/:form/versions/:number', 'forms:read', 'stays shut'],
  ['GET', '/v1/forms/:form/versions/:version/schema', 'forms:read', 'stays shut'],
  ['GET', '/v1/forms/by-key/:key/versions/current/schema', 'forms:read', 'stays shut'],
  ['POST', '/v1/forms/:form/owner', 'forms:write', 'stays shut'],
  ['GET', '/v1/forms/:form/deliveries', 'submissions:read', 'stays shut'],
  ['POST', '/v1/forms/:form/replay', 'webhooks:write', 'stays shut'],
  ['GET', '/v1/forms/:form/submissions/stream', 'submissions:read', 'stays shut'],
  ['POST', '/v1/streams/token', 'submissions:read', 'stays shut'],
  ['GET', '/v1/forms/:form/submissions/export', 'submissions:read', 'stays shut'],
  ['GET', '/v1/uploads/:upload', 'submissions:read', 'stays shut'],
  ['POST', '/v1/keys', 'keys:write', 'stays shut'],
  ['GET', '/v1/keys', 'keys:write', 'stays shut'],
  ['GET', '/v1/audit', 'audit:read', 'stays shut'],
  ['DELETE', '/v1/keys/:key', 'keys:write', 'stays shut'],
  // What ends the things that the others need comes last.
  ['DELETE', '/v1/submissions/:submission', 'submissions:delete', 'stays shut'],
  ['POST', '/v1/erasures', 'submissions:delete', 'stays shut'],
  ['DELETE', '/v1/webhooks/:webhook', 'webhooks:write', 'opens'],
  ['POST', '/v1/forms/:form/archive', 'forms:write', 'stays shut'],
  ['DELETE', '/v1/forms/:form', 'submissions:delete', 'stays shut'],
];

/** A path as the table of routes has it. */
function routeOf(path: string): string {
  return path.includes('/by-key/') ? path : path.replace(/:\w+/, ':id');
}

/** What a key needs beside the scope of the route, since the call gives rights over answers. */
const neededToo: Record<string, string[]> = {
  '/v1/forms/:form/owner': ['submissions:read', 'submissions:delete'],
  // The example sends the answers elsewhere.
  '/v1/forms/:form/versions': ['webhooks:write'],
  '/v1/keys/:key': ['forms:read'],
};

describe('the table of routes', () => {
  it('has every route that needs a key', () => {
    const withKey = routes.filter((route) => keyOf(route) === 'required');

    expect(new Set(guarded.map(([method, path]) => `${method} ${routeOf(path)}`))).toEqual(
      new Set(withKey.map(({ method, path }) => `${method.toUpperCase()} ${path}`)),
    );
  });
});

describe.each(oneEngine('postgres'))('keys on %s', (engine) => {
  let service: TestService;
  let ids: Record<string, string>;

  beforeAll(async () => {
    service = await startService({ engine });
    ids = await givenOneOfEach(service);
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('are demanded, checked, and need the scope of the route', async () => {
    const scopes = [...new Set(guarded.map(([, , scope]) => scope))];
    const keyWithout = new Map<string, string>();
    for (const scope of scopes) {
      keyWithout.set(scope, await service.givenKey(scopes.filter((other) => other !== scope)));
    }

    for (const [method, path, scope] of guarded) {
      const ask = (caller: CallOptions) => call(service, ids, method, path, caller);
      const none = await ask(anyone);
      const basic = await ask({ ...anyone, headers: { authorization: 'Basic dTpw' } });
      const wrong = await ask({ key: 'hfs_wrong' });
      const weak = await ask({ key: keyWithout.get(scope) ?? '' });

      expect([method, path, ...deniedAs(none)]).toEqual([method, path, 401, 'unauthorized', 'missing_key']);
      expect([path, none.headers.get('www-authenticate')]).toEqual([path, 'Bearer']);
      expect([path, ...deniedAs(basic)]).toEqual([path, 401, 'unauthorized', 'missing_key']);
      expect([path, ...deniedAs(wrong)]).toEqual([path, 401, 'unauthorized', 'invalid_key']);
      expect([path, ...deniedAs(weak)]).toEqual([path, 401, 'unauthorized', 'insufficient_scope']);
      expect(weak.json.error.message).toContain(scope);
      expect(weak.headers.get('www-authenticate')).toBe(
        `Bearer error="insufficient_scope", scope="${scope}"`,
      );
    }
  });

  it('are not replaced by access tokens of OAUTH_ISSUER, which open /mcp alone', async () => {
    await using issuer = await startIssuer();
    await using other = await startService({ engine, env: { OAUTH_ISSUER: issuer.url, OAUTH_SCOPES: '*' } });
    const token = await issuer.sign({
      aud: `${other.url.replace('localhost', '127.0.0.1')}/mcp`,
      scope: '*',
    });
    const things = await givenOneOfEach(other);
    await using agent = await startAgent(other, { key: token });

    const forms = await agent.use('list_forms');
    for (const [method, path] of guarded) {
      const reply = await call(other, things, method, path, { key: token });
      expect([method, path, ...deniedAs(reply)]).toEqual([method, path, 401, 'unauthorized', 'invalid_key']);
    }
    for (const protocol of ['connect', 'grpc'] as const) {
      await expect(other.client(FormsService, protocol, token).listForms({})).rejects.toThrow(
        'The API key is unknown',
      );
    }

    expect(forms.facts.forms).toHaveLength(1);
  });

  it('of another project find nothing', async () => {
    const key = await service.givenKey(['*'], 'other');

    // A key names forms of the caller's project alone: one that there is not is made.
    for (const [method, path] of guarded.filter(([, route]) => /(?<!by-key\/):/.test(route))) {
      const reply = await call(service, ids, method, path, { key });

      expect([method, path, ...deniedAs(reply)]).toEqual([method, path, 404, 'not_found', 'not_found']);
    }
    expect((await service.get('/v1/forms', { key })).json.forms).toEqual([]);
    expect((await service.get('/v1/webhooks', { key })).json.webhooks).toEqual([]);
    expect((await service.get('/v1/keys', { key })).json.keys).toHaveLength(1);
  });

  it('that have a route’s one scope are enough for it', async () => {
    const own = await givenOneOfEach(service);

    // A stream that is opened does not end.
    for (const [method, path, scope] of guarded.filter(([, route]) => !route.endsWith('/stream'))) {
      const key = await service.givenKey([scope, ...(neededToo[path] ?? [])]);
      const reply = await call(service, own, method, path, { key });

      expect([method, path, reply.status, reply.json?.error?.reason]).not.toEqual([
        method,
        path,
        401,
        expect.anything(),
      ]);
      expect([method, path, reply.status < 500]).toEqual([method, path, true]);
    }
  });

  it('are not asked for where the settings say so, but on the rows that always need one', async () => {
    await using open = await startService({ engine, env: { REQUIRE_API_KEY: 'false' } });
    const things = await givenOneOfEach(open);

    for (const [method, path, , opens] of guarded) {
      const reply = await call(open, things, method, path, anyone);
      const checked = await call(open, things, method, path, { key: 'hfs_wrong' });

      expect([method, path, reply.status === 401]).toEqual([method, path, opens === 'stays shut']);
      expect([path, ...deniedAs(checked)]).toEqual([path, 401, 'unauthorized', 'invalid_key']);
    }
  });
});

/** One of each thing; the delivery is delivered or pending. */
async function givenOneOfEach(service: TestService): Promise<Record<string, string>> {
  const fields = [
    { id: 'email', type: 'email' },
    { id: 'cv', type: 'file' },
  ];
  const form = await service.givenPublishedForm({ fields });
  const { upload } = (
    await service.post(`/api/forms/${form.id}/uploads?field=cv&filename=cv.txt`, Buffer.from('a life'))
  ).json;
  const answers = { email: 'ann@example.com', cv: { upload_id: upload.upload_id } };
  const submitted = await service.post(`/api/forms/${form.id}/submissions`, { answers });
  const session = await service.post(`/v1/forms/${form.id}/sessions`);
  const hook = { url: 'http://127.0.0.1:1/hook', events: ['submission.created'] };
  const { webhook } = (await service.post('/v1/webhooks', hook)).json;
  const tested = await service.post(`/v1/webhooks/${webhook.id}/test`);
  const made = await service.post('/v1/keys', { name: 'spare', scopes: ['forms:read'] });
  return {
    form: form.id,
    number: '1',
    version: '1',
    upload: upload.upload_id,
    submission: submitted.json.submission_id,
    session: session.json.session.id,
    webhook: webhook.id,
    delivery: tested.json.delivery.id,
    key: made.json.key.id,
  };
}

/** Calls a route with a body that fits. */
function call(
  service: TestService,
  ids: Record<string, string>,
  method: string,
  path: string,
  caller: CallOptions,
) {
  const route = routes.find((one) => one.method.toUpperCase() === method && one.path === routeOf(path));
  const body = examples[route?.operation.name ?? '']?.json;
  return service.call(
    method,
    path.replace(/:(\w+)/g, (_, kind) => ids[kind] ?? ''),
    body,
    caller,
  );
}
