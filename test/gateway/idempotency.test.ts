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
