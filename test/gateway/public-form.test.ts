import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { oneEngine } from '../support/database.ts';
import { anyone, deniedAs, refusedAs } from '../support/replies.ts';
import { startService, type TestService } from '../support/server.ts';

const definition = {
  name: 'Order',
  slug: 'order',
  description: 'What would you like?',
  fields: [
    {
      id: 'kind',
      type: 'select',
      required: true,
      options: [{ label: 'Large', value: 'l' }],
      agentHint: 'SECRET',
    },
    { id: 'vip', type: 'boolean', answeredBy: 'agent', label: 'SECRET', defaultValue: true },
    { id: 'gift', type: 'text', visibleWhen: { field: 'vip', op: 'eq', value: true } },
    { id: 'discount', type: 'text', visibleWhen: { field: 'vip', op: 'eq', value: false } },
    { id: 'code', type: 'text', maxLength: 9, visibleWhen: { field: 'kind', op: 'eq', value: 'l' }, page: 2 },
    { id: 'campaign', type: 'hidden', defaultValue: 'none' },
    { id: 'consent', type: 'checkbox', answeredBy: 'human' },
  ],
  pages: [{ title: 'First' }, { title: 'Second' }],
  delivery: {
    type: 'email',
    to: ['secret@example.com'],
    subject: 'SECRET',
  },
  settings: {
    locale: 'en',
    submitLabel: 'Order now',
    allowedOrigins: ['https://shop.example'],
    embedOrigins: ['https://secret.example'],
    retentionDays: 30,
    maxSubmissions: 2,
  },
  translations: {
    de: {
      name: 'Bestellung',
      fields: { kind: { label: 'Art', agentHint: 'SECRET' }, vip: { label: 'SECRET' } },
    },
  },
};

describe.each(oneEngine('pglite'))('GET /api/forms/:id on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('shows anybody what a published form asks, and nothing of who gets the answers', async () => {
    const { id, current_version_id } = await service.givenPublishedForm(definition);

    const reply = await service.get(`/api/forms/${id}`, anyone);

    expect(reply.status).toBe(200);
    const { fields, ...form } = reply.json.form;
    expect(form).toEqual({
      id,
      version: { id: current_version_id, number: 1, checksum: expect.stringMatching(/^[0-9a-f]{64}$/) },
      open: true,
      name: 'Order',
      slug: 'order',
      description: 'What would you like?',
      pages: definition.pages,
      settings: { locale: 'en', submitLabel: 'Order now', review: false, theme: { mode: 'auto' } },
      translations: { de: { name: 'Bestellung', fields: { kind: { label: 'Art' } } } },
    });
    expect(fields.map((field: { id: string }) => field.id)).toEqual([
      'kind',
      'gift',
      'code',
      'campaign',
      'consent',
    ]);
    expect(fields[1]).not.toHaveProperty('visibleWhen');
    expect(fields[2]).toMatchObject({
      maxLength: 9,
      page: 2,
      visibleWhen: definition.fields[4]?.visibleWhen,
    });
    expect(fields[3]).toMatchObject({ hidden: true, defaultValue: 'none' });
    expect(fields.map((field: object) => 'hosted_only' in field && field.hosted_only)).toEqual([
      false,
      false,
      false,
      false,
      true,
    ]);
    expect(reply.text).not.toMatch(/secret|owner@example/i);
  });

  it('refuses a parameter that it does not know, and ignores those of shared links', async () => {
    const { id } = await service.givenPublishedForm(definition);

    const refused = await service.get(`/api/forms/${id}?version=2`, anyone);

    expect([refused.status, refused.json.error.details[0].path]).toEqual([400, 'version']);
    expect((await service.get(`/api/forms/${id}?utm_source=x&_=1`, anyone)).status).toBe(200);
  });

  it('shows the same by RPC, on every protocol', async () => {
    const { id, current_version_id } = await service.givenPublishedForm(definition);

    for (const protocol of ['connect', 'grpc', 'grpc-web'] as const) {
      const { form } = await service.client(FormsService, protocol, null).getPublicForm({ formId: id });

      expect(form).toMatchObject({ id, versionId: current_version_id, version: 1, open: true });
      expect(form?.definition?.delivery).toBeUndefined();
      expect(form?.definition?.settings).toMatchObject({ allowedOrigins: [], embedOrigins: [] });
      expect(form?.definition?.settings?.retentionDays).toBeUndefined();
      expect(JSON.stringify(form?.definition?.fields)).not.toMatch(/secret/i);
      expect(form?.definition?.translations.de?.fields).not.toHaveProperty('vip');
    }
  });

  it('knows no draft, no form without a page, no hidden form and no unknown one; an archived one is gone', async () => {
    const draft = await service.givenDraft();
    const pageless = await service.givenPublishedForm({ settings: { publicPage: false } });
    const archived = await service.givenPublishedForm();
    await service.post(`/v1/forms/${archived.id}/archive`);
    const asked = await service.post('/v1/sessions', {
      definition: { fields: [{ label: 'Which day?', type: 'date' }] },
    });

    for (const id of [draft.id, pageless.id, asked.json.session.form_id, 'form_unknown']) {
      const reply = await service.get(`/api/forms/${id}`, anyone);
      expect([id, ...deniedAs(reply)]).toEqual([id, 404, 'not_found', 'not_found']);
    }
    expect(deniedAs(await service.get(`/api/forms/${archived.id}`, anyone))).toEqual([
      410,
      'validation_failed',
      'archived',
    ]);
  });

  it('answers the pages that may post to the form, and 304 for what has not changed', async () => {
    const { id } = await service.givenPublishedForm(definition);
    const read = (headers: Record<string, string>) => service.get(`/api/forms/${id}`, { key: null, headers });

    const first = await read({ origin: 'https://shop.example' });
    const etag = first.headers.get('etag') ?? '';
    const again = await read({ 'if-none-match': etag });
    const elsewhere = await read({ origin: 'https://elsewhere.example' });
    await service.post(`/v1/forms/${id}/versions`, { ...definition, name: 'New name' });
    const changed = await read({ 'if-none-match': etag });

    expect(first.headers.get('access-control-allow-origin')).toBe('*');
    expect(first.headers.get('cache-control')).toBe('public, max-age=60');
    expect(first.headers.get('vary')).toContain('origin');
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
    expect(deniedAs(elsewhere)).toEqual([401, 'unauthorized', 'origin_not_allowed']);
    expect(elsewhere.headers.get('cache-control')).toBe('no-store');
    expect([changed.status, changed.json.form.name]).toEqual([200, 'New name']);
  });

  it('says when a form takes no more submissions', async () => {
    const { id } = await service.givenPublishedForm({ settings: { maxSubmissions: 1 } });
    const before = await service.get(`/api/forms/${id}`, anyone);

    await service.post(`/api/forms/${id}/submissions`, { answers: { email: 'a@example.com' } }, anyone);
    const after = await service.get(`/api/forms/${id}`, anyone);

    expect([before.json.form.open, after.json.form.open]).toEqual([true, false]);
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'));
  });
});

describe.each(oneEngine('pglite'))('POST …/submissions?check=true on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it.each(['/api', '/v1'])('says what submitting below %s would, and stores nothing', async (tier) => {
    const { id } = await service.givenPublishedForm({
      settings: { allowedOrigins: ['https://shop.example'] },
    });
    // Parameters that are unknown are ignored, as without `check`.
    const path = `${tier}/forms/${id}/submissions?check=true&ref=1`;
    const caller = tier === '/api' ? anyone : {};
    const check = (body: unknown, options = {}) => service.post(path, body, { ...caller, ...options });

    const fits = await check({ answers: { email: 'a@example.com' } });
    const refused = await check({ answers: { email: 'ada', phone: '1' } });
    const odd = await check({ answers: {}, source: 1 });
    const foreign = await check({ answers: {} }, { headers: { origin: 'https://elsewhere.example' } });
    const unclear = await service.post(path.replace('true', 'maybe'), { answers: {} }, caller);

    expect([fits.status, fits.json]).toEqual([200, { ok: true, submission_id: '' }]);
    expect(refusedAs(refused)).toEqual([
      ['answers.email', 'invalid_string'],
      ['answers.phone', 'unrecognized_keys'],
    ]);
    expect(refusedAs(odd)).toEqual([
      ['source', 'invalid_type'],
      ['answers.email', 'invalid_type'],
    ]);
    expect(deniedAs(foreign)).toEqual([401, 'unauthorized', 'origin_not_allowed']);
    expect(deniedAs(unclear)).toEqual([400, 'validation_failed', 'bad_request']);
    expect(await service.countSubmissions()).toBe(0);
  });

  it('takes JSON alone, and nothing for a form that is closed', async () => {
    const { id } = await service.givenPublishedForm({ settings: { closesAt: '2020-01-01T00:00:00Z' } });
    const path = `/api/forms/${id}/submissions?check=true`;

    const post = await service.post(path, new URLSearchParams({ email: 'a@example.com' }).toString(), {
      key: null,
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    });
    const late = await service.post(path, { answers: { email: 'a@example.com' } }, anyone);

    expect(deniedAs(post)).toEqual([415, 'validation_failed', 'media_type']);
    expect(deniedAs(late)).toEqual([410, 'validation_failed', 'closed']);
  });

  it('counts as a submission where rates are limited', async () => {
    await using limited = await startService({ engine, env: { RATE_LIMIT: 'on' } });
    const { id } = await limited.givenPublishedForm();
    const answers = { email: 'a@example.com' };

    const submitted = await limited.post(`/api/forms/${id}/submissions`, { answers }, anyone);
    const checked = await limited.post(`/api/forms/${id}/submissions?check=true`, { answers }, anyone);

    const left = [submitted, checked].map(
      ({ headers }) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1],
    );
    expect(Number(left[1])).toBe(Number(left[0]) - 1);
  });
});
