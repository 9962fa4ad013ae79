import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, it } from 'vitest';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { describeApi } from '../../src/gateway/openapi.ts';
import { routes } from '../../src/gateway/router.ts';
import { accessOf } from '../../src/rpc/authorization.ts';
import { document } from '../support/openapi.ts';
import { startGateway } from './given.ts';

it('is a valid OpenAPI 3.1 document', async () => {
  const result = await new Validator().validate(structuredClone(document));

  expect(result.errors).toBeUndefined();
  expect(result.valid).toBe(true);
});

it('names every operation once', () => {
  const names = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map((operation) => ('operationId' in operation ? operation.operationId : undefined)),
  );

  expect(new Set(names).size).toBe(names.length);
  expect(names).not.toContain(undefined);
});

it('takes the scope of each route from the authorization table of the RPCs', () => {
  const changed = describeApi(routes, {
    baseUrl: 'http://127.0.0.1',
    version: '0.0.0',
    accessOf: (rpc) =>
      rpc === FormsService.method.listForms ? { key: 'required', scope: 'keys:write' } : accessOf(rpc),
  });

  expect(document.paths['/v1/forms']?.get).toMatchObject({
    description: 'Scope: `forms:read`.',
    security: [{ key: [] }],
  });
  expect(changed.paths['/v1/forms']?.get).toMatchObject({ description: 'Scope: `keys:write`.' });
  expect(changed.paths['/v1/forms/{id}']).toEqual(document.paths['/v1/forms/{id}']);
});

it('is served to any page', async () => {
  await using gateway = await startGateway();

  const reply = await fetch(`${gateway.url}/openapi.json`);

  expect(reply.headers.get('access-control-allow-origin')).toBe('*');
  expect(await reply.json()).toMatchObject({ openapi: '3.1.1', servers: [{ url: 'https://forms.example' }] });
});
