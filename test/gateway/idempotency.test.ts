import { create } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FormDefinitionSchema, FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { contactForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService();
  const fields = [...contactForm.fields, { id: 'cv', type: 'file' }];
  formId = (await service.givenPublishedForm({ fields })).id;
});

afterAll(() => service?.[Symbol.asyncDispose]());

const delivered = { ...contactForm, delivery: { type: 'webhook', url: 'https://example.com/form' } };

it.each([
  ['a draft', '/api/forms/create', contactForm, delivered],
  ['a session', () => `/v1/forms/${formId}/sessions`, { metadata: { n: 1 } }, { metadata: { n: 2 } }],
  ['a submission', () => `/api/forms/${formId}/submissions`, answered('a'), answered('b')],
  ['a managed submission', () => `/v1/forms/${formId}/submissions`, answered('c'), answered('d')],
  ['a demo submission', '/api/demo', demo('a'), demo('b')],
  ['a file', () => `/api/forms/${formId}/uploads?field=cv&filename=cv.txt`, 'mine', 'yours'],
  ['a webhook', '/v1/webhooks', hook('one'), hook('two')],
  ['an API key', '/v1/keys', keyNamed('one'), keyNamed('two')],
  ['a version', () => `/v1/forms/${formId}/versions`, delivered, contactForm],
])('gives %s again, and refuses another one under its key', async (name, path, body, other) => {
  const send = (content: object | string) =>
    service.post(typeof path === 'string' ? path : path(), content, {
      headers: {
        'idempotency-key': `key of ${name}`,
        ...(typeof content === 'string' && { 'content-type': 'application/octet-stream' }),
      },
    });

  const first = await send(body);
  const second = await send(body);
  const refused = await send(other);

  expect(first.status, first.text).toBe(201);
  expect(second.json).toEqual(first.json);
  expect([second.status, refused.status, refused.json.error.reason]).toEqual([201, 409, 'conflict']);
  const { next_call, next, session_id, submission_id } = refused.json.error;
  expect([next_call, session_id ?? submission_id]).toEqual(
    name.includes('session')
      ? ['get_session', first.json.session.id]
      : name.includes('submission')
        ? ['get_submission', first.json.submission_id]
        : ['with_other_idempotency_key', undefined],
  );
  expect(next).not.toContain('details');
});

it('names the session that the key of a reworded question belongs to, and gives its submission again', async () => {
  const headers = { 'idempotency-key': 'deploy 4.2' };
  const ask = (label: string) =>
    service.post('/v1/sessions', { definition: { fields: [{ id: 'ok', label }] } }, { headers });

  const first = await ask('May we deploy?');
  const reworded = await ask('Deploy now?');
  await service.post(`/v1/sessions/${first.json.session.id}/submit`, { answers: { ok: 'yes' } });
  const again = await ask('May we deploy?');

  expect(reworded.status).toBe(409);
  expect(reworded.json.error).toMatchObject({
    reason: 'conflict',
    session_id: first.json.session.id,
    next: expect.stringContaining('GET /v1/sessions/:id'),
  });
  expect(again.status).toBe(201);
  expect(again.json.session).toMatchObject({ id: first.json.session.id, status: 'submitted' });
  expect(again.json.submission.answers).toEqual({ ok: 'yes' });
});

it('gives the first reply again of a version that was published between two others', async () => {
  const { id } = await service.givenPublishedForm({ fields: [{ id: 'a', type: 'text' }] });
  const publish = (fields: object[], key?: string) =>
    service.post(
      `/v1/forms/${id}/versions`,
      { ...contactForm, fields },
      { headers: key === undefined ? {} : { 'idempotency-key': key } },
    );
  const former = [{ id: 'a', type: 'text' }];
  await publish([
    { id: 'a', type: 'text', required: true },
    { id: 'b', type: 'text' },
  ]);

  const first = await publish(former, 'A');
  await publish([{ id: 'b', type: 'text' }]);
  const again = await publish(former, 'A');

  expect(first.json.changes).not.toEqual([]);
  expect(again.json).toEqual(first.json);
});

it('takes the same definition by REST and by RPC for one request', async () => {
  const forms = createClient(
    FormsService,
    createConnectTransport({ baseUrl: service.url, httpVersion: '1.1' }),
  );
  const headers = { authorization: `Bearer ${service.key}` };
  const idempotencyKey = 'by two doors';

  const byRest = await service.post('/api/forms/create', contactForm, {
    headers: { 'idempotency-key': idempotencyKey },
  });
  const definition = create(FormDefinitionSchema, {
    name: contactForm.name,
    slug: contactForm.slug,
    fields: [
      { id: 'email', type: FormFieldType.EMAIL, required: true },
      { id: 'message', type: FormFieldType.TEXTAREA },
    ],
    delivery: { channel: { case: 'email', value: {} } },
  });
  const byRpc = await forms.createForm({ definition, idempotencyKey }, { headers });

  expect(byRest.json.form.id).toBe(byRpc.form?.id);
});

it.each([
  ['a changed session', 200, 'PATCH', '', { extend_by: 60 }, { extend_by: 61 }],
  ['a submitted session', 201, 'POST', '/submit', answered('a'), answered('b')],
] as const)(
  'gives %s again, and refuses another one under its key',
  async (name, status, method, path, body, other) => {
    const { json } = await service.post(`/v1/forms/${formId}/sessions`, {});
    const send = (content: object) =>
      service.call(method, `/v1/sessions/${json.session.id}${path}`, content, {
        headers: { 'idempotency-key': `key of ${name}` },
      });

    const first = await send(body);
    const second = await send(body);
    const refused = await send(other);

    expect(first.status, first.text).toBe(status);
    expect(second.json).toEqual(first.json);
    expect([second.status, refused.status, refused.json.error.reason]).toEqual([status, 409, 'conflict']);
  },
);

it('gives a rotated secret, a test and a replay again, and a session that was cancelled', async () => {
  const { json } = await service.post('/v1/webhooks', hook('retried'));
  const of = `/v1/webhooks/${json.webhook.id}`;
  const twice = async (path: string, body = {}) => {
    const send = () => service.post(path, body, { headers: { 'idempotency-key': 'twice' } });
    return [await send(), await send()] as const;
  };

  const rotated = await twice(`${of}/rotate-secret`);
  const tested = await twice(`${of}/test`);
  const replayed = await twice(`${of}/replay`);
  const { json: opened } = await service.post(`/v1/forms/${formId}/sessions`, {});
  const cancelled = await twice(`/v1/sessions/${opened.session.id}/cancel`);

  expect(rotated[0].json.secret).toMatch(/^whsec_/);
  for (const [first, second] of [rotated, tested, replayed, cancelled]) {
    expect(first.status, first.text).toBeLessThan(300);
    expect([second.status, second.json]).toEqual([first.status, first.json]);
  }
});

function answered(name: string) {
  return { answers: { email: `${name}@example.com` } };
}

function demo(name: string) {
  return { name, email: 'ann@example.com', message: 'Hello' };
}

function hook(name: string) {
  return { url: `https://example.com/${name}`, events: ['submission.created'] };
}

function keyNamed(name: string) {
  return { name, scopes: ['forms:read'] };
}
