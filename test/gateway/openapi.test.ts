import type { DescMethod } from '@bufbuild/protobuf';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect, it } from 'vitest';
import { formFileJsonSchema } from '../../src/domain/definition/form-file.ts';
import { emittedEvents } from '../../src/domain/events/index.ts';
import { policyOf } from '../../src/domain/methods.ts';
import { describeApi } from '../../src/gateway/openapi/document.ts';
import { routes } from '../../src/gateway/router.ts';
import { document } from '../support/openapi.ts';
import { startGateway } from './given.ts';

it('is a valid OpenAPI 3.1 document', async () => {
  const result = await new Validator().validate(structuredClone(document));

  expect(result.errors).toBeUndefined();
  expect(result.valid).toBe(true);
});

it.each([
  [
    '/openapi.json',
    3,
    (allowPrivateUrls: boolean) =>
      describeApi(routes, { baseUrl: 'http://a.co', version: '0', allowPrivateUrls }).components,
  ],
  ['/schemas/form.json', 0, (allowPrivateUrls: boolean) => formFileJsonSchema({ allowPrivateUrls })],
])('%s says what this instance takes as the address of a receiver', (_path, some, schemasWith) => {
  const patternsOf = (allowPrivateUrls: boolean) =>
    JSON.stringify(schemasWith(allowPrivateUrls))
      .match(/"pattern":"\^https\??:\/\/[^"]*"/g)
      ?.toSorted();

  const [strict, open] = [patternsOf(false), patternsOf(true)];

  expect(strict?.length).toBeGreaterThan(some);
  expect(open).toHaveLength(strict?.length ?? 0);
  expect(strict?.filter((pattern) => pattern.includes('https?'))).toEqual([]);
  expect(open?.filter((pattern) => pattern.includes('https?')).length).toBeGreaterThan(some);
});

it('describes the body of every reply that has one, so that generated types of all replies have it', () => {
  const without = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.values(operations).flatMap((operation) =>
      Object.entries('responses' in operation ? (operation.responses as Record<string, object>) : {})
        .filter(([status, reply]) => status !== '304' && !('content' in reply))
        .map(([status]) => `${path} ${status}`),
    ),
  );

  expect(without).toEqual([]);
});

it('names every operation once', () => {
  const names = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map((operation) => ('operationId' in operation ? operation.operationId : undefined)),
  );

  expect(new Set(names).size).toBe(names.length);
  expect(names).not.toContain(undefined);
});

it('takes the scope of each route from the policies of the RPCs', () => {
  const described = Object.fromEntries(
    Object.values(document.paths).flatMap((path) =>
      (Object.values(path) as DescribedOperation[]).map(({ operationId, description, security }) => [
        operationId,
        { description, security },
      ]),
    ),
  );

  expect(described).toEqual(
    Object.fromEntries(routes.map(({ operation: { name, rpc } }) => [name, expectedOf(rpc)])),
  );
  expect(document.paths['/v1/forms']?.get).toMatchObject({
    description: 'Scope: `forms:read`.',
    security: [{ key: [] }],
  });
});

type DescribedOperation = { operationId: string; description: string; security: object[] };

function expectedOf(rpc: DescMethod | undefined): object {
  const { key, scope } = rpc === undefined ? { key: 'none', scope: '' } : policyOf(rpc);
  if (key === 'none') return { description: 'Needs no key.', security: [] };
  if (key === 'required') return { description: `Scope: \`${scope}\`.`, security: [{ key: [] }] };
  return { description: `A key needs the scope \`${scope}\`.`, security: [{}, { key: [] }] };
}

it('has an example for every body in JSON, which its schema takes', () => {
  const ajv = formats.default(new Ajv2020({ strict: false }));
  const missing: string[] = [];
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const operation of Object.values(operations) as { requestBody?: { content: JsonContent } }[]) {
      const json = operation.requestBody?.content['application/json'];
      if (json === undefined) continue;
      const { components } = document;
      if (!ajv.validate({ ...json.schema, components }, json.example))
        missing.push(`${path}: ${ajv.errorsText()}`);
    }
  }

  expect(missing).toEqual([]);
});

it('describes every segment of a path that is a parameter', () => {
  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.values(operations).map((operation) => {
      const { parameters = [] } = operation as { parameters?: { in: string; name: string }[] };
      const names = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`);
      return [path, names];
    }),
  );

  expect(described).toEqual(described.map(([path]) => [path, String(path).match(/\{\w+\}/g) ?? []]));
});

it('is served to any page', async () => {
  await using gateway = await startGateway();

  const reply = await fetch(`${gateway.url}/openapi.json`);

  expect(reply.headers.get('access-control-allow-origin')).toBe('*');
  expect(await reply.json()).toMatchObject({ openapi: '3.1.1', servers: [{ url: 'https://forms.example' }] });
});

it('describes every event that leaves the service, with an example that fits', () => {
  const ajv = formats.default(new Ajv2020({ strict: false }));
  const { components, webhooks } = document;
  const problems = Object.entries(webhooks).flatMap(([name, { post }]) => {
    const { schema, example } = post.requestBody.content['application/json'];
    return ajv.validate({ ...schema, components }, example) ? [] : [`${name}: ${ajv.errorsText()}`];
  });

  expect(Object.keys(webhooks).sort()).toEqual(
    [...emittedEvents, 'session.ended', 'session.notified'].sort(),
  );
  expect(problems).toEqual([]);
});

it('refuses what the service refuses', () => {
  const { components } = document;
  const ajv = formats.default(new Ajv2020({ strict: false })).addSchema({ $id: 'api', components });
  const isTaken = (name: string, body: object) =>
    ajv.getSchema(`api#/components/schemas/${name}`)?.(body) === true;
  const hook = { url: 'https://example.com', events: ['submission.created'] };
  const key = { name: 'ci', scopes: ['forms:read'] };

  expect([
    isTaken('CreateWebhookInput', hook),
    isTaken('CreateKeyInput', key),
    isTaken('DemoInput', { email: 'ann@example.com', message: 'Hello' }),
    isTaken('UpdateSessionInput', { extend_by: 60 }),
  ]).toEqual([true, true, true, true]);
  const refused: [string, object][] = [
    ['CreateWebhookInput', { ...hook, events: [] }],
    ['CreateWebhookInput', { ...hook, events: ['submission.created', 'submission.created'] }],
    ['CreateWebhookInput', { ...hook, events: ['submission.completed'] }],
    ['CreateWebhookInput', { ...hook, url: 'ftp://example.com' }],
    ['CreateWebhookInput', { ...hook, url: `https://example.com/${'x'.repeat(2048)}` }],
    ['UpdateWebhookInput', { events: ['session.expired', 'session.expired'] }],
    ['CreateKeyInput', { ...key, scopes: [] }],
    ['CreateKeyInput', { ...key, scopes: ['forms:read', 'forms:read'] }],
    ['CreateKeyInput', { ...key, scopes: ['all'] }],
    ['CreateKeyInput', { ...key, name: '' }],
    ['DemoInput', { email: 'ann@example.com' }],
    ['DemoInput', { email: 'ann', message: 'Hello' }],
    ['DemoInput', { email: 'ann@example.com', message: 'Hello', phone: '1' }],
    ['SubmissionInput', { answers: {}, source: 's'.repeat(201) }],
    ['CreateSessionInput', { return_url: 'http://example.com' }],
    ['UpdateSessionInput', { expires_in: 60, extend_by: 60 }],
    ['EmailInput', { email: 'ann' }],
  ];
  expect(refused.filter(([name, body]) => isTaken(name, body))).toEqual([]);
});

it('shows definitions with their defaults in replies, and asks for none of them in requests', () => {
  const { Field, FieldInput } = document.components.schemas;

  expect(Field).toMatchObject({ required: expect.arrayContaining(['id', 'type', 'required', 'hidden']) });
  expect(FieldInput).toMatchObject({ required: ['id', 'type'] });
  expect(JSON.stringify(document.components.schemas)).not.toContain('"default":');
});

type JsonContent = { 'application/json'?: { schema: object; example: unknown } };
