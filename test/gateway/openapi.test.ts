import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, it } from 'vitest';
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

it('is served to any page', async () => {
  await using gateway = await startGateway();

  const reply = await fetch(`${gateway.url}/openapi.json`);

  expect(reply.headers.get('access-control-allow-origin')).toBe('*');
  expect(await reply.json()).toMatchObject({ openapi: '3.1.1', servers: [{ url: 'https://forms.example' }] });
});
