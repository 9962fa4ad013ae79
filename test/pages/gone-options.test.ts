import { expect, it } from 'vitest';
import { createForm } from '../../packages/client/src/form/create-form.ts';
import { startService } from '../support/server.ts';

const labels = ['Webhooks', 'Emails', 'Files'];
const fieldsWith = (...given: string[]) => {
  const options = given.map((label) => ({ label, value: label.toLowerCase() }));
  const rows = [{ label: 'Work', value: 'work' }];
  return [
    { id: 'one', type: 'radio', options },
    { id: 'list', type: 'select', options },
    { id: 'many', type: 'multi_select', options },
    { id: 'grid', type: 'matrix', rows, options },
  ];
};
const chosen = { one: 'webhooks', list: 'emails', many: ['webhooks', 'files'], grid: { work: 'webhooks' } };

it('a page and a form by script name the options that can’t be chosen any more', async () => {
  await using service = await startService();
  const { id } = await service.givenPublishedForm({ fields: fieldsWith(...labels) });
  const { form: asked } = (await service.get(`/api/forms/${id}`)).json;
  const form = createForm(asked, { service: service.url, storage: null, languages: ['en'] });
  for (const [field, answer] of Object.entries(chosen)) form.set(field, answer);
  const made = (await service.get(`/v1/forms/${id}`)).json.form.definition;
  await service.post(`/v1/forms/${id}/versions`, { ...made, fields: fieldsWith('Emails', 'Files') });

  const { many, grid, ...single } = chosen;
  const body = new URLSearchParams({
    ...single,
    'grid.work': grid.work,
    _shown: 'one list many grid',
    _page: '1',
  });
  for (const value of many) body.append('many', value);
  const headers = { accept: 'text/html', origin: service.url };
  const posted = await service.call('POST', `/f/${id}`, body, { key: null, headers });
  const own = await service.call('POST', `/api/forms/${id}/submissions`, body, { key: null, headers });
  const sent = await form.submit();

  for (const page of [posted, own]) {
    expect(page.status).toBe(422);
    const errors = [...page.text.matchAll(/<p class="error"[^>]*>.*?<\/span>(.*?)<\/p>/g)].map(
      ([, text]) => text,
    );
    expect(errors).toEqual(Array(3).fill('“webhooks” can’t be chosen any more.'));
  }
  expect(sent).toBe(false);
  expect(form.state.fields.map(({ error }) => error)).toEqual([
    '“Webhooks” can’t be chosen any more.',
    undefined,
    '“Webhooks” can’t be chosen any more.',
    '“Webhooks” can’t be chosen any more.',
  ]);
});
