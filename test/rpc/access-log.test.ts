import { request } from 'node:http';
import { stripVTControlCharacters } from 'node:util';
import { Code } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { ExportFormat, SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { givenEmbeddedDatabase } from '../support/database.ts';
import { failureOf } from '../support/failures.ts';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

let service: TestService;
let form: PublishedForm;
let reader: { key: string; id: string };

beforeAll(async () => {
  service = await startService({ env: { LOG_LEVEL: 'info' } });
  form = await service.givenPublishedForm();
  const made = await service.post('/v1/keys', { name: 'r', scopes: ['submissions:read'], project: 'shop' });
  reader = { key: made.json.secret, id: made.json.key.id };
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the log at info', () => {
  it('has a line for each request, by route, with who called and how much was answered', async () => {
    const accepted = await service.post(
      `/api/forms/${form.id}/submissions?secret=query`,
      { answers: { email: 'ada@example.com' } },
      { key: null, headers: { 'x-request-id': 'rest-1' } },
    );
    const foreign = { key: reader.key, headers: { 'x-request-id': 'rest-2' } };
    const absent = await service.get(`/v1/forms/${form.id}/submissions`, foreign);
    await service.get('/v1/forms', { key: reader.key, headers: { 'x-request-id': 'rest-3' } });
    const head = { method: 'HEAD', headers: { 'x-request-id': 'rest-4' } };
    await fetch(`${service.url}/openapi.json`, head);
    await service.get(`/v1/forms/${form.id}/submissions/export?format=ndjson`, {
      headers: { 'x-request-id': 'rest-5' },
    });

    expect(await lineOf('rest-1')).toEqual({
      level: 30,
      time: expect.any(Number),
      pid: expect.any(Number),
      hostname: expect.any(String),
      msg: 'request',
      requestId: 'rest-1',
      ownRequestId: expect.stringMatching(uuid),
      method: 'POST',
      route: '/api/forms/:id/submissions',
      status: 201,
      ms: expect.any(Number),
      bytes: Buffer.byteLength(accepted.text),
    });
    expect(await lineOf('rest-2')).toMatchObject({
      route: '/v1/forms/:id/submissions',
      status: 404,
      reason: 'not_found',
      bytes: Buffer.byteLength(absent.text),
      keyId: reader.id,
      project: 'shop',
    });
    expect(await lineOf('rest-3')).toMatchObject({ route: '/v1/forms', status: 401, keyId: reader.id });
    expect(await lineOf('rest-4')).toMatchObject({
      method: 'HEAD',
      route: '/openapi.json',
      status: 200,
      bytes: 0,
    });
    expect(await lineOf('rest-5')).toMatchObject({ project: 'default' });
    // A stream's length is not known before it is sent.
    expect(await lineOf('rest-5')).not.toHaveProperty('bytes');
  });

  it.each(['connect', 'grpc', 'grpc-web'] as const)(
    'has one for each RPC by %s, with its code',
    async (protocol) => {
      const id = (name: string) => `${protocol}-${name}`;
      const forms = (name: string, key = service.key) =>
        service.client(FormsService, protocol, key, { 'x-request-id': id(name) });
      await forms('ok').listForms({});
      const refused = await failureOf(forms('refused', reader.key).listForms({}));
      const submissions = service.client(SubmissionsService, protocol, service.key, {
        'x-request-id': id('stream'),
      });
      let bytes = 0;
      const request = { formId: form.id, format: ExportFormat.CSV };
      for await (const { data } of submissions.exportSubmissions(request)) bytes += data.length;

      expect(await lineOf(id('ok'))).toMatchObject({
        method: 'POST',
        route: '/headlessforms.v1.FormsService/ListForms',
        status: 200,
        project: 'default',
      });
      expect(await lineOf(id('ok'))).not.toHaveProperty('code');
      expect(refused.code).toBe(Code.PermissionDenied);
      expect(await lineOf(id('refused'))).toMatchObject({ code: 'PermissionDenied', keyId: reader.id });
      expect(bytes).toBeGreaterThan(0);
      expect(await lineOf(id('stream'))).not.toHaveProperty('bytes');
    },
  );

  it('has an id of its own in all lines of a request whose caller gives many the same', async () => {
    await using debug = await startService({ env: { LOG_LEVEL: 'debug' } });
    const headers = { 'x-request-id': 'same' };
    const lines = (msg: string) =>
      debug.logged.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);
    const same = (msg: string) => lines(msg).filter(({ requestId }) => requestId === 'same');

    await debug.get('/v1/forms', { headers });
    await debug.get('/v1/keys', { headers });
    await failureOf(debug.client(FormsService, 'connect', null, headers).listForms({}));
    const own = (await debug.get('/v1/forms')).headers.get('x-request-id') ?? '';

    await until(() => lines('request').length === 4);
    const ids = same('request').map(({ ownRequestId }) => String(ownRequestId));
    expect([new Set(ids).size, ids.filter((id) => !uuid.test(id))]).toEqual([3, []]);
    expect([...same('call'), ...same('call refused')].map(({ ownRequestId }) => ownRequestId)).toEqual(ids);
    expect(own).toMatch(uuid);
    expect(lines('request').at(-1)).not.toHaveProperty('ownRequestId');
  });

  it('has none for health checks that succeed', async () => {
    const asked = { 'x-request-id': 'probe-1' };
    for (const path of ['/health', '/ready']) await fetch(`${service.url}${path}`, { headers: asked });
    for (const protocol of ['connect', 'grpc'] as const)
      await service.client(Health, protocol, null, asked).check({});
    await fetch(`${service.url}/health`, { method: 'POST', headers: asked });
    const unknown = { 'x-request-id': 'probe-2' };
    await failureOf(service.client(Health, 'grpc', null, unknown).check({ service: 'unknown' }));

    expect(await lineOf('probe-1')).toMatchObject({ method: 'POST', status: 404 });
    expect(await lineOf('probe-2')).toMatchObject({ code: 'NotFound' });
  });

  it('says of a caller who has gone that nothing was answered', async () => {
    const path = `/v1/forms/${form.id}/submissions/stream`;
    const headers = { authorization: `Bearer ${service.key}`, 'x-request-id': 'gone-1' };
    const stream = request(`${service.url}${path}`, { headers }).end();
    await new Promise((resolve) => stream.once('response', resolve));
    stream.on('error', () => undefined).destroy();

    expect(await lineOf('gone-1')).toMatchObject({
      route: '/v1/forms/:id/submissions/stream',
      status: 200,
      aborted: true,
    });
  });

  it('holds no token, query, key, answer or unknown path', async () => {
    const draft = await service.givenDraft();
    const session = await service.post(`/v1/forms/${form.id}/sessions`, { expires_in: 600 });
    const sessionId: string = session.json.session.id;
    const secrets = [
      'ada.lovelace@example.com',
      new URL(draft.activate_url, service.url).searchParams.get('token'),
    ];
    await fetch(`${service.url}/s/${sessionId}`, { headers: { 'x-request-id': 'page-1' } });
    await fetch(`${service.url}/mail/${'t'.repeat(40)}`, { headers: { 'x-request-id': 'page-2' } });
    await fetch(`${service.url}/un-known/path`, { headers: { 'x-request-id': 'page-3' } });
    await fetch(`${service.url}/headlessforms.v1.FormsService/Un-Known`, {
      headers: { 'x-request-id': 'page-4' },
    });
    await service.post(draft.activate_url, { email: secrets[0] });
    await service.post(`/api/forms/${form.id}/submissions?token=query`, { answers: { email: secrets[0] } });

    expect(await lineOf('page-1')).toMatchObject({ route: '/s/:sessionId', status: 200 });
    expect(await lineOf('page-2')).toMatchObject({ route: '/mail/:token' });
    expect(await lineOf('page-3')).not.toHaveProperty('route');
    expect(await lineOf('page-4')).not.toHaveProperty('route');
    const log = service.logged.join('');
    const forbidden = [
      ...secrets,
      session.json.session?.id ?? session.json.id,
      'ttttt',
      'n-known',
      'query',
      service.key,
      reader.key,
    ];
    expect(forbidden.filter((text) => log.includes(String(text)))).toEqual([]);
  });
});

describe('settings of the log', () => {
  it('leave requests out with ACCESS_LOG=off', async () => {
    await using quiet = await startService({ env: { LOG_LEVEL: 'info', ACCESS_LOG: 'off' } });

    await quiet.get('/v1/forms');

    expect(quiet.logged.filter((line) => line.includes('"msg":"request"'))).toEqual([]);
  });

  it.each([
    ['with LOG_FORMAT=pretty', { LOG_FORMAT: 'pretty' }],
    ['in a terminal', {}],
  ])('make it readable %s', async (where, settings) => {
    using folder = temporaryFolder();
    await givenEmbeddedDatabase(`${folder.path}/database`);
    const port = await freePort();
    const env = {
      PORT: String(port),
      GRPC_PORT: String(await freePort()),
      DATA_DIR: folder.path,
      LOG_LEVEL: 'info',
      ...settings,
    };
    await using readable = spawnService(env, { inTerminal: where === 'in a terminal' });
    await readable.started();
    const session = `http://127.0.0.1:${port}/v1/sessions/sess_secret`;
    await fetch(session, { headers: { 'x-request-id': 'pretty-1' } });
    await fetch(`http://127.0.0.1:${port}/nowhere/secret`);
    // Lines are written after their answers; that of a terminal would follow the echo of Ctrl+C.
    await readable.wrote('(no route)');

    const { code, output, errors } = await readable.stop('SIGINT');
    const said = stripVTControlCharacters(output + errors).replaceAll('\r', '');

    expect(code).toBe(0);
    expect(said).toMatch(/^\d\d:\d\d:\d\d GET \/v1\/sessions\/:id 401 \d+ ms missing_key$/m);
    expect(said).toMatch(/^\d\d:\d\d:\d\d GET \(no route\) 404 \d+ ms not_found$/m);
    expect(said).toMatch(/^\d\d:\d\d:\d\d key\.created key_\w+ by service$/m);
    expect(said).toMatch(/^(?:\^C)?\[\d\d:\d\d:\d\d\] INFO: Stopping;/m);
    expect(said).not.toMatch(/secret|"msg"|pretty-1/);
  });
});

/** The line of a request, which is written when its answer has ended. One of the audit may have its id, too. */
async function lineOf(requestId: string) {
  const lines = () =>
    service.logged
      .map((line) => JSON.parse(line))
      .filter((line) => line.requestId === requestId && line.msg !== 'audit');
  await until(() => lines().length > 0);
  expect(lines()).toHaveLength(1);
  return lines()[0];
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
