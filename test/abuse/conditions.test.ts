import { expect, it } from 'vitest';
import { type AttackedService, HEALTH_MS, harmDone, sharedService } from './attacked-service.ts';

/** As many as fit into a definition of 64 KiB. */
const dependent = Array.from({ length: 35 }, (_, index) => ({
  id: `f${index}`,
  type: 'text',
  visibleWhen: { field: 'essay', op: 'contains', value: `${'a'.repeat(10)}b${'a'.repeat(1_500)}` },
}));

const essay = { id: 'essay', type: 'textarea', maxLength: 100_000 };

it('conditions that nearly find their text keep nobody waiting', async () => {
  const service = await sharedService('pglite');
  const formId = await givenKeylessForm(service, [essay, ...dependent]);
  const statuses: number[] = [];

  const harm = await harmDone(service, async () => {
    for (let count = 0; count < 5; count += 1) {
      const answers = { essay: 'a'.repeat(60_000) };
      statuses.push((await post(service, `/api/forms/${formId}/submissions`, { answers })).status);
    }
  });

  expect(statuses).toEqual([201, 201, 201, 201, 201]);
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
});

async function givenKeylessForm(service: AttackedService, fields: object[]): Promise<string> {
  const definition = { name: 'Theirs', slug: 'theirs', fields, delivery: { type: 'email' } };
  const created = await post(service, '/api/forms/create', definition);
  const { form } = (await created.json()) as { form: { id: string; activate_url: string } };
  await post(service, form.activate_url, { email: 'owner@example.com' });
  return form.id;
}

function post({ url }: AttackedService, path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) });
}
