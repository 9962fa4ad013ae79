import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../../support/database.ts';
import { anIsoTime, anyone, deniedAs, id, refusedAs } from '../../support/replies.ts';
import { seededId, seedSubmissions } from '../../support/seed.ts';
import { contactForm, type PublishedForm, startService, type TestService } from '../../support/server.ts';

const byKey = { by: 'api', at: anIsoTime, key_id: id('key') };

describe.each(oneEngine('postgres'))('the rows of forms, submissions and sessions on %s', (engine) => {
  let service: TestService;
  let form: PublishedForm;
  const answers = { email: 'ann@example.com' };

  beforeAll(async () => {
    service = await startService({ engine });
    form = await service.givenPublishedForm();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const givenSubmission = async (body: object = { answers }) =>
    (await service.post(`/v1/forms/${form.id}/submissions`, body)).json.submission_id;

  it('6: POST /v1/forms/validate gives the definition back with every default and no secret', async () => {
    const count = async () => (await service.database.select('select 1 from forms')).length;
    const before = await count();

    const reply = await service.post('/v1/forms/validate', {
      ...contactForm,
      delivery: { type: 'webhook', url: 'https://example.com/hook', secret: 'a secret of ours' },
    });

    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      ok: true,
      form: {
        name: 'Contact',
        slug: 'contact',
        fields: [
          {
            id: 'email',
            type: 'email',
            label: 'Email',
            required: true,
            hidden: false,
            maxLength: 10_000,
            answeredBy: 'anyone',
            page: 1,
          },
          expect.objectContaining({ id: 'message', label: 'Message', required: false }),
        ],
        delivery: { type: 'webhook', url: 'https://example.com/hook' },
        settings: expect.objectContaining({ allowPartial: false, allowedOrigins: [], embedOrigins: [] }),
      },
    });
    expect(
      refusedAs(await service.post('/v1/forms/validate', { ...contactForm, slug: 'no spaces' })),
    ).toEqual([['slug', 'invalid_string']]);
    expect(await count()).toBe(before);
  });

  it('6: gives back what can be validated again, to the same', async () => {
    const once = await service.post('/v1/forms/validate', contactForm);
    const twice = await service.post('/v1/forms/validate', once.json.form);

    expect(twice.json).toEqual(once.json);
  });

  it('8: GET /v1/forms/:id/submissions lists newest first, 20 unless told, 100 at most', async () => {
    const busy = await service.givenPublishedForm();
    const path = `/v1/forms/${busy.id}/submissions`;
    const count = 105;
    const { database } = service;
    await seedSubmissions((sql, params) => database.execute(sql, params), busy.id, count);
    const ids = Array.from({ length: count }, (_, n) => seededId(count - n));
    const list = async (query = '') => {
      const { status, json } = await service.get(`${path}${query}`);
      expect([query, status]).toEqual([query, 200]);
      return json.submissions.map((one: { id: string }) => one.id);
    };

    expect(await list()).toEqual(ids.slice(0, 20));
    expect(await list('?limit=100')).toEqual(ids.slice(0, 100));
    expect(await list('?limit=101')).toEqual(ids.slice(0, 100));
    expect(await list('?limit=99999999999999999999')).toEqual(ids.slice(0, 100));
    expect(await list('?limit=1&offset=104')).toEqual(ids.slice(104));
    expect(await list('?offset=105')).toEqual([]);
    const first = await service.get(`${path}?limit=100`);
    const rest = await service.get(`${path}?limit=100&cursor=${first.json.next_cursor}`);
    expect(rest.json.submissions.map((one: { id: string }) => one.id)).toEqual(ids.slice(100));
    expect(rest.json.next_cursor).toBeNull();
  });

  it('8: refuses a limit below 1, and one or an offset that is no whole number', async () => {
    for (const query of [
      'limit=0',
      'limit=-1',
      'limit=1.5',
      'limit=x',
      'limit=',
      'offset=-1',
      'offset=1e3',
    ]) {
      const reply = await service.get(`/v1/forms/${form.id}/submissions?${query}`);

      expect([query, ...deniedAs(reply)]).toEqual([query, 400, 'validation_failed', 'bad_request']);
      expect(reply.json.error.details[0].path).toBe(query.split('=')[0]);
    }
  });

  it('9: GET /v1/submissions/:id reads one whole', async () => {
    const submissionId = await givenSubmission({ answers, source: 'crm' });

    const reply = await service.get(`/v1/submissions/${submissionId}`);

    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      submission: {
        id: submissionId,
        form_id: form.id,
        form_version_id: form.current_version_id,
        session_id: null,
        source: 'crm',
        answers,
        status: 'accepted',
        created_at: anIsoTime,
        metadata: {},
        respondent: null,
        provenance: Object.fromEntries(Object.keys(answers).map((field) => [field, byKey])),
      },
    });
    expect(deniedAs(await service.get('/v1/submissions/sub_none'))).toEqual([404, 'not_found', 'not_found']);
  });

  it('10: GET /v1/forms/:id/agent-schema tells what is asked, hints included, of a draft too', async () => {
    const definition = {
      description: 'Write to us',
      fields: [{ id: 'email', type: 'email', required: true, agentHint: 'The work address' }],
    };
    const [published, draft] = [
      await service.givenPublishedForm(definition),
      await service.givenDraft(definition),
    ];

    const reply = await service.get(`/v1/forms/${published.id}/agent-schema`);
    const ofDraft = await service.get(`/v1/forms/${draft.id}/agent-schema`);

    expect(reply.json).toEqual({
      form: {
        id: published.id,
        name: 'Contact',
        slug: 'contact',
        description: 'Write to us',
        version_id: published.current_version_id,
      },
      fields: [
        expect.objectContaining({
          id: 'email',
          type: 'email',
          agentHint: 'The work address',
          maxLength: 254,
        }),
      ],
      settings: expect.objectContaining({ allowPartial: false }),
      json_schema: expect.objectContaining({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        required: ['email'],
      }),
      submit: { method: 'POST', url: expect.stringMatching(`/api/forms/${published.id}/submissions$`) },
    });
    expect([ofDraft.status, ofDraft.json.form.version_id]).toEqual([200, null]);
    expect((await service.post(reply.json.submit.url, { answers }, anyone)).status).toBe(201);
  });

  it('11: POST /v1/forms/:id/sessions opens one for an hour, without a body too', async () => {
    const reply = await service.post(`/v1/forms/${form.id}/sessions`);

    const { session } = reply.json;
    expect(reply.status).toBe(201);
    expect(session).toEqual({
      id: expect.stringMatching(/^sess_[0-9a-zA-Z]{22,}$/),
      form_id: form.id,
      form_version_id: form.current_version_id,
      status: 'open',
      url: `${service.url.replace('localhost', '127.0.0.1')}/f/${session.id}`,
      expires_at: anIsoTime,
      created_at: anIsoTime,
      opened_at: null,
      prefill: {},
      metadata: {},
      submission_id: null,
      outcome: null,
      allow_decline: false,
    });
    expect(Date.parse(session.expires_at) - Date.parse(session.created_at)).toBe(3_600_000);
  });

  it('11: keeps to its bounds: 1 second to 30 days, 16 KiB of metadata, prefill that fits', async () => {
    const open = (body: object, formId = form.id) => service.post(`/v1/forms/${formId}/sessions`, body);
    const life = async (expires_in: number) => {
      const { session } = (await open({ expires_in })).json;
      return (Date.parse(session.expires_at) - Date.parse(session.created_at)) / 1000;
    };

    expect([await life(1), await life(2_592_000)]).toEqual([1, 2_592_000]);
    expect(refusedAs(await open({ expires_in: 0 }))).toEqual([['expires_in', 'too_small']]);
    expect(refusedAs(await open({ expires_in: 2_592_001 }))).toEqual([['expires_in', 'too_big']]);
    expect(refusedAs(await open({ expires_in: 1.5 }))).toEqual([['expires_in', 'invalid_type']]);
    expect(refusedAs(await open({ expires_in: null }))).toEqual([['expires_in', 'invalid_type']]);
    expect(refusedAs(await open({ prefill: { email: 'x', nobody: 1 } }))).toEqual([
      ['prefill.email', 'invalid_string'],
      ['prefill.nobody', 'unrecognized_keys'],
    ]);
    expect((await open({ metadata: { a: 'x'.repeat(16 * 1024 - 8) } })).status).toBe(201);
    expect(refusedAs(await open({ metadata: { a: 'x'.repeat(16 * 1024 - 7) } }))).toEqual([
      ['metadata', 'too_big'],
    ]);
    expect(deniedAs(await open({}, (await service.givenDraft()).id))).toEqual([
      404,
      'not_found',
      'not_found',
    ]);
  });

  it('11: opens one session for all requests with the same Idempotency-Key and content', async () => {
    const open = (body: object, key = 'order-1') =>
      service.post(`/v1/forms/${form.id}/sessions`, body, { headers: { 'idempotency-key': key } });

    const first = await open({ metadata: { order: 1 } });
    const second = await open({ metadata: { order: 1 } });
    const other = await open({ metadata: { order: 2 } });

    expect([second.status, second.json]).toEqual([201, first.json]);
    expect(deniedAs(other)).toEqual([409, 'validation_failed', 'conflict']);
    expect(deniedAs(await open({}, ''))).toEqual([400, 'validation_failed', 'bad_request']);
    expect(deniedAs(await open({}, 'k'.repeat(256)))).toEqual([400, 'validation_failed', 'bad_request']);
  });

  it('11: opens none on a form that is closed', async () => {
    const closed = await service.givenPublishedForm({ settings: { closesAt: '2026-01-01T00:00:00Z' } });

    const reply = await service.post(`/v1/forms/${closed.id}/sessions`);

    expect(deniedAs(reply)).toEqual([410, 'validation_failed', 'closed']);
  });

  it('12: GET /v1/sessions/:id reads it, with partial answers where the form keeps them', async () => {
    const keeping = await service.givenPublishedForm({ settings: { allowPartial: true } });
    const [plain, partial] = [await givenSession(form), await givenSession(keeping)];
    await service.patch(`/v1/sessions/${partial.id}`, { answers: { message: 'Half' } });

    const read = await service.get(`/v1/sessions/${plain.id}`);
    const readPartial = await service.get(`/v1/sessions/${partial.id}`);

    expect([read.status, read.json]).toEqual([200, { session: plain }]);
    expect(readPartial.json.session).toEqual({
      ...partial,
      partial_answers: { message: 'Half' },
      provenance: { message: byKey },
    });
    expect(deniedAs(await service.get('/v1/sessions/sess_none'))).toEqual([404, 'not_found', 'not_found']);
  });

  it('13: PATCH /v1/sessions/:id moves its end, and merges prefill and metadata', async () => {
    const session = await givenSession(form, { prefill: answers, metadata: { a: 1, b: 2 } });
    const change = (body: object) => service.patch(`/v1/sessions/${session.id}`, body);

    const extended = await change({ extend_by: 60 });
    const merged = await change({ prefill: { email: null, message: 'Hi' }, metadata: { a: null, c: 3 } });
    const restarted = await change({ expires_in: 60 });

    expect(Date.parse(extended.json.session.expires_at) - Date.parse(session.expires_at)).toBe(60_000);
    expect(merged.json.session).toMatchObject({ prefill: { message: 'Hi' }, metadata: { b: 2, c: 3 } });
    expect(merged.json.session.prefill).not.toHaveProperty('email');
    expect(Date.parse(restarted.json.session.expires_at)).toBeLessThan(Date.parse(session.expires_at));
    expect(refusedAs(await change({ expires_in: 1, extend_by: 1 }))).toHaveLength(1);
    expect(refusedAs(await change({ extend_by: 2_592_000 }))).toEqual([['extend_by', 'too_big']]);
    expect(refusedAs(await change({ answers: { message: 'x' } }))).toEqual([['answers', 'custom']]);
    expect(refusedAs(await change({ prefill: { nobody: 1 } }))).toEqual([
      ['prefill.nobody', 'unrecognized_keys'],
    ]);
  });

  it('14: POST /v1/sessions/:id/submit lays answers over prefill over defaults, once', async () => {
    const asking = await service.givenPublishedForm({
      fields: [...contactForm.fields, { id: 'plan', type: 'text', defaultValue: 'free' }],
      settings: { allowPartial: true },
    });
    const session = await givenSession(asking, { prefill: answers, metadata: { order: 7 } });
    const path = `/v1/sessions/${session.id}`;
    await service.patch(path, { answers: { message: 'Half' } });

    const wrong = await service.post(`${path}/submit`, { answers: { email: 'nobody' } });
    const typo = await service.post(`${path}/submit`, { answers, colour: 'red' });
    const reply = await service.post(`${path}/submit`, { answers: { message: 'Whole' } });
    const again = await service.post(`${path}/submit`);
    const late = await service.patch(path, { extend_by: 5 });

    expect(refusedAs(wrong)).toEqual([['answers.email', 'invalid_string']]);
    expect(refusedAs(typo)).toEqual([['colour', 'unrecognized_keys']]);
    const { submission_id: submissionId } = reply.json;
    expect(reply.status).toBe(201);
    expect(reply.json).toEqual({
      ok: true,
      submission_id: id('sub'),
      submission: {
        id: submissionId,
        form_id: asking.id,
        form_version_id: asking.current_version_id,
        session_id: session.id,
        source: 'api',
        answers: { ...answers, message: 'Whole', plan: 'free' },
        status: 'accepted',
        created_at: anIsoTime,
        metadata: { order: 7 },
        respondent: null,
        provenance: {
          email: { ...byKey, by: 'prefill' },
          message: byKey,
          plan: { by: 'default', at: anIsoTime },
        },
      },
      session: expect.objectContaining({ id: session.id, status: 'submitted', submission_id: submissionId }),
    });
    for (const refused of [again, late]) {
      expect(deniedAs(refused)).toEqual([409, 'validation_failed', 'conflict']);
      expect(refused.json.error.submission_id).toBe(submissionId);
    }
    expect((await service.get(`/v1/submissions/${submissionId}`)).json).toEqual({
      submission: reply.json.submission,
    });
  });

  it('12, 13, 14: a session is expired from the instant of expires_at, for every reader', async () => {
    const session = await givenSession(form, { prefill: answers });
    const path = `/v1/sessions/${session.id}`;
    await service.database.execute(
      `update sessions set expires_at = date_trunc('milliseconds', now()) where id = $1`,
      [session.id],
    );

    expect((await service.get(path)).json.session.status).toBe('expired');
    expect(deniedAs(await service.patch(path, { extend_by: 60 }))).toEqual([
      410,
      'validation_failed',
      'expired',
    ]);
    expect(deniedAs(await service.post(`${path}/submit`))).toEqual([410, 'validation_failed', 'expired']);
    expect((await service.get(`/f/${session.id}`, anyone)).status).toBe(410);
  });

  async function givenSession(of: PublishedForm, body?: object) {
    return (await service.post(`/v1/forms/${of.id}/sessions`, body)).json.session;
  }
});
