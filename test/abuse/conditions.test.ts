import { expect, it } from 'vitest';
import {
  type AttackedService,
  givenForm,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  sharedService,
} from './attacked-service.ts';

/** As many as fit into a definition of 64 KiB. */
const dependent = Array.from({ length: 35 }, (_, index) => ({
  id: `f${index}`,
  type: 'text',
  visibleWhen: { field: 'essay', op: 'contains', value: `${'a'.repeat(10)}b${'a'.repeat(1_500)}` },
}));

const essay = { id: 'essay', type: 'textarea', maxLength: 100_000 };

it('conditions that nearly find their text keep nobody waiting', async () => {
  // With limits of its own: other attacks use up those of this address.
  const service = await sharedService('pglite', { RATE_LIMIT: 'off' });
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

it('conditions that double with each hidden field before keep nobody waiting for their page', async () => {
  const service = await sharedService('pglite');
  const hidden = Array.from({ length: 20 }, (_, index) => {
    const before = { field: `h${index - 1}`, op: 'eq', value: 'v' };
    const visibleWhen = index === 0 ? { field: 'name', op: 'ne', value: 'x' } : { any: [before, before] };
    return { id: `h${index}`, type: 'text', hidden: true, visibleWhen };
  });
  const last = { id: 'last', type: 'text', visibleWhen: { field: 'h19', op: 'eq', value: 'v' } };
  const formId = await givenForm(service, { fields: [{ id: 'name', type: 'text' }, ...hidden, last] });
  const query = hidden.map(({ id }) => `${id}=v`).join('&');
  let page = '';

  const harm = await harmDone(service, async () => {
    page = await (await fetch(`${service.url}/f/${formId}?${query}`)).text();
  });

  expect(page).toContain('last');
  expect(page.length).toBeLessThan(2 ** 20);
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
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
