import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { contactForm, startService, type TestService } from '../support/server.ts';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('POST /api/forms/create', () => {
  it('makes a draft without a key, with the relative address that activates it', async () => {
    const reply = await service.post('/api/forms/create', contactForm, { key: null });

    expect(reply.status).toBe(201);
    expect(reply.json).toEqual({
      form: {
        id: expect.stringMatching(/^form_/),
        name: 'Contact',
        slug: 'contact',
        status: 'draft',
        activate_url: `/api/forms/${reply.json.form.id}/activate?token=${reply.json.form.activate_url.split('=')[1]}`,
      },
    });
  });

  it('ignores authorization of another scheme, and checks a key that is given', async () => {
    const basic = await service.post('/api/forms/create', contactForm, {
      key: null,
      headers: { authorization: 'Basic dXNlcjpwYXNz' },
    });
    const wrong = await service.post('/api/forms/create', contactForm, { key: 'hfs_wrong' });
    const weak = await service.post('/api/forms/create', contactForm, {
      key: await service.givenKey(['forms:read']),
    });

    expect(basic.status).toBe(201);
    expect([wrong.status, wrong.json.error.reason]).toEqual([401, 'invalid_key']);
    expect([weak.status, weak.json.error.reason]).toEqual([401, 'insufficient_scope']);
    expect(weak.headers.get('www-authenticate')).toContain('scope="forms:write"');
  });

  it('names all problems at once: unknown names, wrong types and broken rules', async () => {
    const reply = await service.post('/api/forms/create', {
      ...contactForm,
      colour: 'red',
      fields: [
        { id: '1st', type: 'email' },
        { id: 'a', type: 'number', min: 5, max: 1 },
      ],
      settings: { allowPartial: 'yes' },
    });

    expect(reply.status).toBe(422);
    expect(reply.json.error.code).toBe('validation_failed');
    expect(reply.json.error.details).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          path: 'fields.0.id',
          code: 'invalid_string',
          message: expect.stringContaining('must start with a letter'),
        }),
        expect.objectContaining({ path: 'colour', code: 'unrecognized_keys' }),
        expect.objectContaining({ path: 'settings.allowPartial', code: 'invalid_type' }),
      ]),
    );
  });

  it('answers any page: CORS on /api, none on /v1', async () => {
    const headers = {
      origin: 'https://site.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,idempotency-key',
    };
    const preflight = await fetch(`${service.url}/api/forms/create`, { method: 'OPTIONS', headers });
    const answer = await service.post('/api/forms/create', contactForm, { headers });
    const management = await service.get('/v1/forms', { headers });

    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('idempotency-key');
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-expose-headers')).toContain('Retry-After,X-Request-Id');
    expect(management.headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('POST /api/forms/:id/activate', () => {
  it('publishes the draft, once', async () => {
    const draft = await service.givenDraft();

    const first = await service.post(draft.activate_url, { email: 'owner@example.com' }, { key: null });
    const second = await service.post(draft.activate_url, { email: 'owner@example.com' }, { key: null });

    expect(first.status).toBe(200);
    expect(first.json.form).toEqual({
      id: draft.id,
      name: 'Contact',
      slug: 'contact',
      status: 'published',
      current_version_id: expect.stringMatching(/^ver_/),
      share: expect.objectContaining({ page_url: expect.any(String) }),
    });
    expect(first.json.message).toEqual(expect.any(String));
    expect(first.headers.get('cache-control')).toBe('no-store');
    expect(first.headers.get('referrer-policy')).toBe('no-referrer');
    expect([second.status, second.json.error.reason]).toEqual([401, 'token_used']);
  });

  it('says that answers wait for the confirmation, of forms made without a key that are delivered by mail', async () => {
    const webhook = { delivery: { type: 'webhook', url: 'https://example.com/hook' } };
    const drafts = [
      await service.givenDraft({}, { key: null }),
      await service.givenDraft(webhook, { key: null }),
      await service.givenDraft(),
    ];

    const replies = [];
    for (const { activate_url } of drafts) {
      replies.push(await service.post(activate_url, { email: 'owner@example.com' }, { key: null }));
    }

    const published =
      'The form is published. The confirmation to owner@example.com is saved to a file, because SMTP_URL is not set.';
    const waits =
      'If no email arrives, that address has stopped our emails or was asked too often today. Responses are held until it confirms;';
    expect(replies.map(({ json }) => json.message)).toEqual([
      `${published} ${waits} it gets at most 3 notices a day about them.`,
      published,
      published,
    ]);
  });

  it('shows the secret of a webhook that has none, this once', async () => {
    const draft = await service.givenDraft({
      delivery: { type: 'webhook', url: 'https://example.com/hook' },
    });

    const reply = await service.post(draft.activate_url, { email: 'owner@example.com' });

    expect(reply.json.webhook_secret).toMatch(/^whsec_/);
  });

  it('refuses a missing token, a wrong one, a bad address and an unknown form', async () => {
    const draft = await service.givenDraft();
    const path = `/api/forms/${draft.id}/activate`;
    const email = { email: 'owner@example.com' };

    const missing = await service.post(path, email);
    const empty = await service.post(`${path}?token=`, email);
    const wrong = await service.post(`${path}?token=wrong`, email);
    const bad = await service.post(draft.activate_url, { email: 'nobody' });
    const none = await service.post(draft.activate_url, {});
    const number = await service.post(draft.activate_url, { email: 5 });
    const wrongFirst = await service.post(`${path}?token=wrong`, { email: 5 });
    const unknown = await service.post('/api/forms/form_none/activate?token=t', email);

    expect([missing.status, missing.json.error.details[0].path]).toEqual([400, 'token']);
    expect(empty.status).toBe(400);
    expect([wrong.status, wrong.json.error.reason]).toEqual([401, 'invalid_token']);
    for (const reply of [bad, none, number]) {
      expect([reply.status, reply.json.error.details[0].path]).toEqual([422, 'email']);
    }
    expect(wrongFirst.status).toBe(401);
    expect(unknown.status).toBe(404);
  });

  it('reads a browser’s form post and answers with a page, or with JSON where that is preferred', async () => {
    const [one, two] = [await service.givenDraft(), await service.givenDraft()];
    const body = () => new URLSearchParams({ email: 'owner@example.com' });

    const page = await service.post(one.activate_url, body(), { headers: { accept: 'text/html' } });
    const json = await service.post(two.activate_url, body(), { headers: { accept: 'application/json' } });
    const again = await service.post(one.activate_url, body(), { headers: { accept: 'text/html' } });

    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect([json.status, json.json.form.status]).toEqual([200, 'published']);
    expect([again.status, again.headers.get('location')]).toEqual([303, one.activate_url]);
  });
});

describe('the management of forms', () => {
  it('validates a definition and gives it back with every default and no secret', async () => {
    const definition = {
      ...contactForm,
      delivery: { type: 'webhook', url: 'https://example.com/hook', secret: 'top secret' },
    };

    const reply = await service.post('/v1/forms/validate', definition);
    const refused = await service.post('/v1/forms/validate', { name: 5 });

    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ ok: true, form: { fields: [{ id: 'email', label: 'Email' }, {}] } });
    expect(reply.text).not.toContain('top secret');
    expect(refused.status).toBe(422);
  });

  it('lists forms by pages, and reads one with its definition', async () => {
    const form = await service.givenPublishedForm();
    await service.givenDraft();

    const first = await service.get('/v1/forms?limit=1');
    const second = await service.get(`/v1/forms?limit=500&cursor=${first.json.next_cursor}`);
    const one = await service.get(`/v1/forms/${form.id}`);

    expect(first.json.forms).toMatchObject([
      { status: 'draft', current_version_id: null, owner_email: null },
    ]);
    expect(second.json.forms[0].id).toBe(form.id);
    expect(one.json.form).toMatchObject({
      id: form.id,
      owner_email: 'owner@example.com',
      definition: { slug: 'contact' },
    });
  });

  it('tells an agent what a draft asks, and where to submit', async () => {
    const draft = await service.givenDraft();

    const reply = await service.get(`/v1/forms/${draft.id}/agent-schema`);

    expect(reply.json.form).toMatchObject({ id: draft.id, version_id: null });
    expect(reply.json.json_schema).toMatchObject({ type: 'object', required: ['email'] });
    expect(reply.json.submit.method).toBe('POST');
    expect(new URL(reply.json.submit.url).pathname).toBe(`/api/forms/${draft.id}/submissions`);
  });

  it('publishes versions of published forms, reusing what is unchanged', async () => {
    const form = await service.givenPublishedForm();
    const draft = await service.givenDraft();

    const same = await service.post(`/v1/forms/${form.id}/versions`, contactForm);
    const next = await service.post(`/v1/forms/${form.id}/versions`, { ...contactForm, name: 'Changed' });
    const tooEarly = await service.post(`/v1/forms/${draft.id}/versions`, contactForm);
    const broken = await service.post(`/v1/forms/${form.id}/versions`, {});

    expect([same.status, same.json.version.id]).toEqual([201, form.current_version_id]);
    expect([next.json.version.number, next.json.form.name]).toEqual([2, 'Changed']);
    expect([tooEarly.status, tooEarly.json.error.reason]).toEqual([409, 'conflict']);
    expect(broken.status).toBe(422);
  });

  it('asks another address to own the form', async () => {
    const form = await service.givenPublishedForm();

    const asked = await service.post(`/v1/forms/${form.id}/owner`, { email: 'next@example.com' });
    const bad = await service.post(`/v1/forms/${form.id}/owner`, { email: 'nobody' });

    expect([asked.status, asked.json]).toEqual([202, { ok: true }]);
    expect([bad.status, bad.json.error.details[0].path]).toEqual([422, 'email']);
  });

  it('archives a form, which then takes nothing more', async () => {
    const form = await service.givenPublishedForm();

    const archived = await service.post(`/v1/forms/${form.id}/archive`);
    const submitted = await service.post(`/api/forms/${form.id}/submissions`, {
      answers: { email: 'a@example.com' },
    });

    expect([archived.status, archived.json.form.status]).toEqual([200, 'archived']);
    expect([submitted.status, submitted.json.error.reason]).toEqual([410, 'archived']);
  });

  it.each([
    ['GET', '/v1/forms/form_none'],
    ['GET', '/v1/forms/form_none/agent-schema'],
    ['POST', '/v1/forms/form_none/versions'],
    ['POST', '/v1/forms/form_none/archive'],
    ['POST', '/v1/forms/form_none/owner'],
    ['GET', '/v1/forms/form_none/deliveries'],
  ])('knows no form that is not there: %s %s', async (method, path) => {
    const body = path.endsWith('versions') ? contactForm : { email: 'a@example.com' };

    const reply = await service.call(method, path, method === 'POST' ? body : undefined);

    expect([reply.status, reply.json.error.code]).toEqual([404, 'not_found']);
  });

  it.each([
    ['limit=0'],
    ['limit=x'],
    ['limit=1.5'],
    ['limit='],
    ['limit=1&limit=2'],
    ['cursor=garbage'],
    ['cursor='],
  ])('refuses the query %s at its parameter', async (query) => {
    const reply = await service.get(`/v1/forms?${query}`);

    expect([reply.status, reply.json.error.reason]).toEqual([400, 'bad_request']);
    expect(reply.json.error.details[0].path).toBe(query.split('=')[0]);
  });
});
