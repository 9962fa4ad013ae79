import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, it } from 'vitest';
import { document } from '../support/openapi.ts';

const source = JSON.stringify(document);

it('fulfils the recommended rules of Redocly', async () => {
  // `by-key` is no id of a form: those begin with `form_`.
  const rules = { 'no-ambiguous-paths': 'off' } as const;
  const config = await createConfig({ extends: ['recommended'], rules });

  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config });

  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
    [],
  );
});
