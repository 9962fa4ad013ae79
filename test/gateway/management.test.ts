import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: PublishedForm;

beforeAll(async () => {
  service = await startService();
  form = await service.givenPublishedForm({ settings: { allowPartial: true } });
});
afterAll(() => service[Symbol.asyncDispose]());

const answers = { email: 'a@example.com' };
const givenSession = async (body?: object) =>
  (await service.post(`/v1/forms/${form.id}/sessions`, body)).json.session;

describe('sessions', () => {
  it('are opened, read, changed and submitted once', async () => {
    const session = await givenSession();
    const path = `/v1/sessions/${session.id}`;

    const changed = await service.patch(path, {
      extend_by: 60,
      metadata: { a: 1 },
      answers: { message: 'Hi' },
    });
    const submitted = await service.post(`${path}/submit`, { answers });
    const again = await service.post(`${path}/submit`, { answers });
    const late = await service.patch(path, { extend_by: 60 });

    expect(session).toMatchObject({ form_id: form.id, status: 'open', opened_at: null });
    expect(changed.json.session).toMatchObject({ metadata: { a: 1 }, partial_answers: { message: 'Hi' } });
    expect(submitted.status).toBe(201);
    expect(submitted.json).toMatchObject({
      ok: true,
      submission: { id: submitted.json.submission_id, answers: { ...answers, message: 'Hi' } },
      session: { status: 'submitted' },
    });
    expect([again.status, again.json.error.submission_id]).toEqual([409, submitted.json.submission_id]);
    expect(late.status).toBe(409);
    expect((await service.get(path)).json.session.status).toBe('submitted');
  });

  it('keep what fits of partial answers, come with the form they keep, and say where answers are from', async () => {
    const session = await givenSession();
    const path = `/v1/sessions/${session.id}`;

    const strict = await service.patch(path, { answers: { email: 'a@', message: 'Hi' } });
    const saved = await service.patch(path, {
      answers: { email: 'a@', message: 'Hi', gone: 1 },
      lenient: true,
      step: 2,
    });
    const steps = [0, 101, 1.5, '2', 2 ** 40].map((step) => service.patch(path, { step }));
    const whole = await service.patch(path, { metadata: { a: 1 } });
    const reader = await service.givenKey(['sessions:read']);
    const read = await service.get(`${path}?form=true`, { key: reader });
    const plain = await service.get(path, { key: reader });
    const submitted = await service.post(`${path}/submit`, { answers, source: 'checkout' });

    expect(strict.status).toBe(422);
    expect(saved.json.refused.map(({ path: at, code }: Record<string, string>) => [at, code])).toEqual([
      ['answers.email', 'invalid_string'],
      ['answers.gone', 'unrecognized_keys'],
    ]);
    expect(saved.json.session).toMatchObject({ partial_answers: { message: 'Hi' }, step: 2 });
    expect((await Promise.all(steps)).map(({ json }) => json.error.details[0].path)).toEqual(
      steps.map(() => 'step'),
    );
    expect(plain.json.session.step).toBe(2);
    expect(whole.json.refused).toEqual([]);
    const { json } = await service.get(`/api/forms/${form.id}`, { key: null });
    expect(read.json.form).toEqual(json.form);
    expect(plain.json).not.toHaveProperty('form');
    expect(submitted.json.submission).toMatchObject({
      source: 'checkout',
      provenance: { email: { by: 'api' } },
    });
  });

  it.each([
    [{ expires_in: 0 }, 'expires_in'],
    [{ expires_in: 2_592_001 }, 'expires_in'],
    [{ expires_in: 1.5 }, 'expires_in'],
    [{ expires_in: '60' }, 'expires_in'],
    [{ prefill: { nobody: 1 } }, 'prefill.nobody'],
    [{ prefill: [] }, 'prefill'],
    [{ metadata: 'x' }, 'metadata'],
    [{ colour: 1 }, 'colour'],
  ])('are refused with %j', async (body, path) => {
    const reply = await service.post(`/v1/forms/${form.id}/sessions`, body);

    expect([reply.status, reply.json.error.details[0].path]).toEqual([422, path]);
  });

  it('are never submitted by a call that does not fit', async () => {
    const { id } = await givenSession({ prefill: answers });

    const wrongType = await service.post(`/v1/sessions/${id}/submit`, { answers: 'all' });
    const both = await service.patch(`/v1/sessions/${id}`, { expires_in: 5, extend_by: 5 });

    expect([wrongType.status, both.status]).toEqual([422, 422]);
    expect((await service.get(`/v1/sessions/${id}`)).json.session.status).toBe('open');
  });

  it.each([
    ['GET', '/v1/sessions/sess_none'],
    ['PATCH', '/v1/sessions/sess_none'],
    ['POST', '/v1/sessions/sess_none/submit'],
    ['POST', '/v1/forms/form_none/sessions'],
  ])('that are not there answer 404, and strangers 401 whatever they send: %s %s', async (method, path) => {
    const [body, wrong] = method === 'GET' ? [] : [{}, { colour: 1 }];

    expect((await service.call(method, path, body)).status).toBe(404);
    expect((await service.call(method, path, body, { key: null })).status).toBe(401);
    expect((await service.call(method, path, wrong, { key: null })).status).toBe(401);
  });
});

describe('webhooks', () => {
  const hook = { url: 'http://127.0.0.1:1/hook', events: ['submission.created'] };

  it('are registered, read, changed, tested, replayed and deleted', async () => {
    const made = await service.post('/v1/webhooks', { ...hook, form_id: form.id });
    const path = `/v1/webhooks/${made.json.webhook.id}`;

    const listed = await service.get('/v1/webhooks');
    const off = await service.patch(path, { active: false });
    const rotated = await service.post(`${path}/rotate-secret`);
    const tested = await service.post(`${path}/test`);
    const deliveries = await service.get(`${path}/deliveries?limit=1&status=pending`);
    const pending = await service.post(`/v1/webhook-deliveries/${tested.json.delivery.id}/replay`);
    const replayed = await service.post(`${path}/replay`, { status: 'failed', created_after: '2026-01-01' });
    const ofForm = await service.get(`/v1/forms/${form.id}/deliveries`);
    const deleted = await service.delete(path);

    expect([made.status, made.json.secret]).toEqual([201, expect.stringMatching(/^whsec_/)]);
    expect(listed.json.webhooks).toContainEqual(made.json.webhook);
    expect(off.json.webhook).toMatchObject({ active: false, disabled_reason: expect.any(String) });
    expect(rotated.json.secret).not.toBe(made.json.secret);
    expect([tested.status, tested.json.delivery.event]).toEqual([202, 'webhook.test']);
    expect(deliveries.json.deliveries[0].id).toBe(tested.json.delivery.id);
    expect([pending.status, pending.json.error.reason]).toEqual([409, 'conflict']);
    expect([replayed.status, replayed.json]).toEqual([
      202,
      { ok: true, count: 0, more: false, next_created_after: null },
    ]);
    expect(ofForm.status).toBe(200);
    expect([deleted.status, (await service.get(path)).status]).toEqual([200, 404]);
  });

  it('show no secret that was given', async () => {
    const made = await service.post('/v1/webhooks', { ...hook, secret: 'my own secret' });

    expect(made.json.secret).toBeUndefined();
    expect(made.text).not.toContain('my own secret');
  });

  it.each([
    [{ events: [] }, 'events', 'too_small'],
    [{ events: ['submission.completed'] }, 'events.0', 'invalid_enum_value'],
    [{ url: 5 }, 'url', 'invalid_type'],
    [{ url: 'ftp://example.com' }, 'url', undefined],
    [{ secret: 'short' }, 'secret', 'too_small'],
    [{ colour: 1 }, 'colour', 'unrecognized_keys'],
  ])('are refused with %j', async (change, path, code) => {
    const reply = await service.post('/v1/webhooks', { ...hook, ...change });

    expect(reply.status).toBe(422);
    expect(reply.json.error.details[0]).toMatchObject(code === undefined ? { path } : { path, code });
  });

  it.each([
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/deliveries'],
    ['POST', '/rotate-secret'],
    ['POST', '/test'],
    ['POST', '/replay'],
  ])('that are not there answer 404, and strangers 401: %s /v1/webhooks/:id%s', async (method, path) => {
    const to = `/v1/webhooks/wh_none${path}`;

    expect((await service.call(method, to)).status).toBe(404);
    expect((await service.call(method, to, undefined, { key: null })).status).toBe(401);
    expect((await service.post('/v1/webhook-deliveries/dlv_none/replay')).status).toBe(404);
  });
});

describe('keys', () => {
  it('are made, listed without their secret, and revoked', async () => {
    const made = await service.post('/v1/keys', { name: 'ci', scopes: ['forms:read'], expires_in: 60 });
    const listed = await service.get('/v1/keys');
    const revoked = await service.delete(`/v1/keys/${made.json.key.id}`);

    expect([made.status, made.json.secret.slice(-4)]).toEqual([201, made.json.key.last4]);
    expect(listed.text).not.toContain(made.json.secret);
    expect([revoked.status, revoked.json]).toEqual([200, { ok: true }]);
    expect((await service.delete('/v1/keys/key_none')).status).toBe(404);
  });

  it('are refused to strangers and weaker keys, and with what does not fit', async () => {
    const weak = await service.givenKey(['forms:read']);

    expect((await service.get('/v1/keys', { key: null })).status).toBe(401);
    expect((await service.get('/v1/keys', { key: weak })).json.error.reason).toBe('insufficient_scope');
    expect((await service.post('/v1/keys', { name: 5 })).status).toBe(422);
    expect((await service.post('/v1/keys', {})).status).toBe(422);
  });
});

describe('the service', () => {
  it('says that it serves, and that it is ready', async () => {
    expect((await service.get('/health', { key: null })).json).toEqual({ ok: true });
    expect((await service.get('/ready', { key: null })).json).toEqual({
      ok: true,
      database: 'up',
      disk: 'enough',
      log: 'written',
    });
    expect((await fetch(`${service.url}/health`, { method: 'HEAD' })).status).toBe(200);
  });
});
