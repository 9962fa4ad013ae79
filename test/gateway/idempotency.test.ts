import { afterAll, beforeAll, expect, it } from 'vitest';
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
