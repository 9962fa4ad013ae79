import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startService, type TestService } from '../support/server.ts';
import { type InstalledPackage, installPackage } from './installed.ts';

const opened = new AsyncDisposableStack();
let installed: InstalledPackage;
let service: TestService;
let library: typeof import('../../packages/client/src/form.ts');

beforeAll(async () => {
  installed = opened.use(await installPackage());
  service = opened.use(await startService());
  library = await import(
    pathToFileURL(join(installed.folder, 'node_modules', installed.name, 'dist/form.js')).href
  );
});
afterAll(() => opened.disposeAsync());

/** What a browser keeps for a tab. */
function createStorage() {
  const kept = new Map<string, string>();
  return {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, text: string) => void kept.set(name, text),
    removeItem: (name: string) => void kept.delete(name),
  };
}

const choices = (...values: string[]) => values.map((value) => ({ label: value.toUpperCase(), value }));

const survey = {
  fields: [
    { id: 'email', type: 'email', required: true },
    { id: 'company', type: 'text', label: 'Company' },
    { id: 'uses', type: 'multi_select', label: 'Uses', options: choices('forms', 'webhooks') },
    { id: 'plan', type: 'select', label: 'Plan', allowOther: true, options: choices('free', 'team') },
    {
      id: 'grid',
      type: 'matrix',
      label: 'Grid',
      rows: choices('speed', 'price'),
      options: choices('good', 'bad'),
    },
    { id: 'home', type: 'address', page: 2 },
    { id: 'stars', type: 'text', label: 'Stars', page: 2 },
    { id: 'cv', type: 'file', label: 'CV', page: 2, maxFiles: 2 },
    { id: 'campaign', type: 'text', hidden: true },
  ],
};

const changed = {
  fields: [
    { id: 'email', type: 'email', required: true },
    { id: 'uses', type: 'multi_select', label: 'Uses', options: choices('forms', 'exports') },
    { id: 'plan', type: 'select', label: 'Plan', allowOther: true, options: choices('free') },
    { id: 'grid', type: 'matrix', label: 'Grid', rows: choices('speed'), options: choices('good') },
    { id: 'home', type: 'address', page: 2 },
    { id: 'stars', type: 'rating', label: 'Stars', page: 2 },
    { id: 'cv', type: 'file', label: 'CV', page: 2, maxFiles: 2 },
    { id: 'campaign', type: 'text', hidden: true, maxLength: 3 },
  ],
};

async function read(id: string) {
  const { form } = (await service.get(`/api/forms/${id}`, { key: null })).json;
  return form as Parameters<typeof library.createForm>[0];
}

async function publish(id: string, definition: object) {
  const whole = { name: 'Survey', slug: 'survey', delivery: { type: 'email' }, ...definition };
  const reply = await service.post(`/v1/forms/${id}/versions`, whole);
  expect([reply.status, reply.json]).toMatchObject([201, {}]);
  return read(id);
}

it('finishes a draft under a newer version, and names what of it is gone', async () => {
  const { id } = await service.givenPublishedForm(survey);
  const options = { service: service.url, storage: createStorage(), languages: ['en'] };
  const first = library.createForm(await read(id), options);
  const answers = {
    email: 'ada@example.com',
    company: 'Engines',
    uses: ['forms', 'webhooks'],
    plan: 'team',
    grid: { speed: 'good', price: 'good' },
    home: { line1: 'Main St 1' },
    stars: 'five',
    campaign: 'spring',
  };
  for (const [field, answer] of Object.entries(answers)) expect(first.set(field, answer)).toBe(true);
  expect(await first.next()).toBe(true);

  const second = library.createForm(await publish(id, changed), options);

  expect(second.state.step).toBe(2);
  expect(second.state.values).toMatchObject({
    email: 'ada@example.com',
    uses: ['forms'],
    grid: { speed: 'good' },
    home: { line1: 'Main St 1' },
  });
  expect(second.state.dropped).toEqual([
    { id: 'company', label: 'Company', text: 'Engines' },
    { id: 'uses', label: 'Uses', text: 'WEBHOOKS' },
    { id: 'plan', label: 'Plan', text: 'TEAM' },
    { id: 'grid', label: 'Grid', text: 'GOOD' },
    { id: 'stars', label: 'Stars', text: 'five' },
  ]);
  const warn = vi.spyOn(console, 'warn').mockReturnValue();
  expect([second.set('company', 'x'), second.setText('company', 'x')]).toEqual([false, false]);
  expect(await second.upload('company', new Blob(['x']))).toBe(false);
  expect(warn).toHaveBeenCalledTimes(3);
  warn.mockRestore();

  second.set('home', null);
  expect([await second.submit(), second.state.problem]).toEqual([true, '']);
  expect(library.createForm(await read(id), options).state.dropped).toEqual([]);
});

it('sends what only the service can refuse, and shows its words', async () => {
  const fields = [...survey.fields, { id: 'code', type: 'text', hidden: true, required: true }];
  const { id } = await service.givenPublishedForm({ fields });
  const form = library.createForm(await read(id), { service: service.url, storage: null, languages: ['en'] });
  form.set('email', 'ada@example.com');

  expect(await form.submit()).toBe(false);
  expect(form.state.problem).toContain('answers.code');

  form.set('code', 'x');
  expect(await form.submit()).toBe(true);
});

it('shows a field of a type that it does not know as one of the service’s own page', async () => {
  const { id } = await service.givenPublishedForm(survey);
  const definition = await read(id);
  const fields = definition.fields.map((field) =>
    field.id === 'stars' ? { ...field, type: 'mood', required: true } : field,
  );

  const { state } = library.createForm({ ...definition, fields }, { storage: null, languages: ['en'] });

  expect(state.fields.length).toBeGreaterThan(0);
  expect(state.hostedOnly).toEqual(['stars']);
});

it('says what is wrong with a file in the reader’s language, at its field, and keeps its name over a reload', async () => {
  const { id } = await service.givenPublishedForm({
    fields: [
      { id: 'photo', type: 'file', accept: ['image/*'], maxBytes: 2048 },
      { id: 'cv', type: 'file', accept: ['.pdf'], maxFiles: 2 },
    ],
  });
  const sent: string[] = [];
  const options = {
    service: service.url,
    storage: createStorage(),
    languages: ['de'],
    fetch: (url: Parameters<typeof fetch>[0], init?: RequestInit) => {
      sent.push(url instanceof Request ? url.url : url.toString());
      return fetch(url, init);
    },
  };
  const form = library.createForm(await read(id), options);
  await form.ready;
  const error = (field: string) => form.state.fields.find((each) => each.id === field)?.error;

  expect(await form.upload('photo', new Blob(['x'.repeat(2049)], { type: 'image/png' }), 'big.png')).toBe(
    false,
  );
  expect(error('photo')).toBe('big.png ist zu groß. Wählen Sie eine Datei von höchstens 2 kB aus.');
  expect(await form.upload('photo', new Blob(['x'], { type: 'application/pdf' }), 'cv.pdf')).toBe(false);
  expect(error('photo')).toContain('cv.pdf');
  expect(await form.upload('photo', new Blob([], { type: 'image/png' }), 'empty.png')).toBe(false);
  expect(error('photo')).toBe('empty.png ist leer. Wählen Sie eine andere Datei aus.');
  expect(sent).toEqual([]);

  // What is in it only the service sees.
  expect(await form.upload('cv', new Blob(['text']), 'cv.txt')).toBe(false);
  expect([sent.length, error('cv')]).toEqual([1, expect.stringContaining('PDF')]);
  expect(error('cv')).toContain('cv.txt');
  expect(form.state.problem).toBe('');

  for (const name of ['one.pdf', 'two.pdf'])
    expect(await form.upload('cv', new Blob(['%PDF-1.7']), name)).toBe(true);
  expect(error('cv')).toBeUndefined();
  const again = library.createForm(await read(id), options);
  expect(again.state.fields.map(({ files }) => files.map(({ filename, size }) => [filename, size]))).toEqual([
    [],
    [
      ['one.pdf', 8],
      ['two.pdf', 8],
    ],
  ]);
  expect(await again.submit()).toBe(true);
});
