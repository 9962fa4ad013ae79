import { expect, it } from 'vitest';
import { z } from 'zod';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { done, route } from '../../src/gateway/route.ts';

const { deleteWebhook, testWebhook } = WebhooksService.method;

it('takes what is named as a field of the message', () => {
  const body = z.strictObject({ form_id: z.string() });

  expect(() =>
    route('post', '/v1/webhooks/:id/test', testWebhook, { summary: '', body, ...done }),
  ).not.toThrow();
});

it('is refused where it is made if the message has no such field', () => {
  const query = z.object({ force: z.string() });
  const body = z.strictObject({ form: z.string() });

  const made = (path: string, spec: object) => () =>
    route('delete', path, deleteWebhook, { summary: '', ...spec, ...done });

  expect(made('/v1/webhooks/:id', { query })).toThrow('has no field for force');
  expect(made('/v1/webhooks/:id', { body })).toThrow('has no field for form');
  expect(made('/v1/hooks/:id', {})).toThrow('has no field for hook_id');
  expect(made('/v1/hooks/:id', { query, apart: ['id', 'force'] })).not.toThrow();
});
