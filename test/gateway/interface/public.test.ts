import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../../support/database.ts';
import { anIsoTime, anyone, deniedAs, id, refusedAs } from '../../support/replies.ts';
import { contactForm, type PublishedForm, startService, type TestService } from '../../support/server.ts';

describe.each(oneEngine('pglite'))('the public rows of the interface on %s', (engine) => {
  let service: TestService;
  let form: PublishedForm;

  beforeAll(async () => {
    service = await startService({ engine });
    form = await service.givenPublishedForm();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('1: GET /health says that the process serves', async () => {
    const health = await service.get('/health', anyone);
    const ready = await service.get('/ready', anyone);

    expect([health.status, health.json]).toEqual([200, { ok: true }]);
    expect([ready.status, ready.json.ok]).toEqual([200, true]);
  });

  it('2: POST /api/forms/create makes a draft that its activate_url publishes', async () => {
    const reply = await service.post('/api/forms/create', contactForm, anyone);

    const { form: draft } = reply.json;
    expect(reply.status).toBe(201);
    expect(reply.json).toEqual({
      form: {
        id: id('form'),
        name: 'Contact',
        slug: 'contact',
        status: 'draft',
        activate_url: expect.stringMatching(
          new RegExp(`^/api/forms/${draft.id}/activate\\?token=[\\w-]{22,}$`),
        ),
      },
    });
    const stored = await service.database.select('select activation_hash from forms where id = $1', [
      draft.id,
    ]);
    expect(draft.activate_url).not.toContain(stored[0]?.activation_hash);
  });

  it('2: refuses what is no definition, naming each problem at its path', async () => {
    const create = (body: unknown) => service.post('/api/forms/create', body, anyone);

    const reply = await create({ ...contactForm, fields: [{ id: '1st', type: 'email' }] });
    const empty = await create({});
    const typo = await create({ ...contactForm, colour: 'red' });
    const mailToOthers = await create({ ...contactForm, delivery: { type: 'email', to: ['a@example.com'] } });

    expect(reply.status).toBe(422);
    expect(reply.json.error).toEqual({
      code: 'validation_failed',
      message: expect.any(String),
      reason: 'invalid',
      details: [
        {
          path: 'fields.0.id',
          code: 'invalid_string',
          message: expect.stringMatching(/field id must start with a letter/i),
          received: '"1st"',
        },
      ],
      retryable: false,
      next_call: 'corrected',
      next: expect.any(String),
    });
    expect(refusedAs(empty)).toEqual([
      ['name', 'invalid_type'],
      ['slug', 'invalid_type'],
      ['fields', 'invalid_type'],
      ['delivery', 'invalid_type'],
    ]);
    expect(empty.json.error.details[0].message).toBe('Required');
    expect(refusedAs(typo)).toEqual([['colour', 'unrecognized_keys']]);
    expect(refusedAs(mailToOthers)).toEqual([['delivery.to', expect.any(String)]]);
  });

  it('3: POST …/activate publishes with a token and an address, once', async () => {
    const draft = await service.givenDraft();
    const owner = { email: 'owner@example.com' };

    const refusals = {
      noToken: await service.post(`/api/forms/${draft.id}/activate`, owner, anyone),
      wrongToken: await service.post(`/api/forms/${draft.id}/activate?token=wrong`, owner, anyone),
      noEmail: await service.post(draft.activate_url, {}, anyone),
      badEmail: await service.post(draft.activate_url, { email: 'nobody' }, anyone),
      unknown: await service.post('/api/forms/form_none/activate?token=x', owner, anyone),
    };
    const activated = await service.post(draft.activate_url, owner, anyone);
    const again = await service.post(draft.activate_url, owner, anyone);

    expect(activated.status).toBe(200);
    expect(activated.json).toEqual({
      form: {
        id: draft.id,
        name: 'Contact',
        slug: 'contact',
        status: 'published',
        current_version_id: id('ver'),
        share: expect.objectContaining({ page_url: expect.any(String) }),
      },
      message: expect.any(String),
    });
    expect(deniedAs(refusals.noToken)).toEqual([400, 'validation_failed', 'bad_request']);
    expect(deniedAs(refusals.wrongToken)).toEqual([401, 'unauthorized', 'invalid_token']);
    expect(refusedAs(refusals.noEmail)).toEqual([['email', 'invalid_type']]);
    expect(refusedAs(refusals.badEmail)).toEqual([['email', 'invalid_string']]);
    expect(deniedAs(refusals.unknown)).toEqual([404, 'not_found', 'not_found']);
    expect(deniedAs(again)).toEqual([401, 'unauthorized', 'token_used']);
  });

  it('3: takes no token that is older than seven days', async () => {
    const draft = await service.givenDraft();
    await service.database.execute(
      "update forms set activation_expires_at = now() - interval '1 second' where id = $1",
      [draft.id],
    );

    const late = await service.post(draft.activate_url, { email: 'owner@example.com' }, anyone);

    expect(deniedAs(late)).toEqual([401, 'unauthorized', 'invalid_token']);
  });

  describe.each([
    ['4', '/api', anyone],
    ['7', '/v1', {}],
  ])('%s: POST %s/forms/:id/submissions', (row, tier, caller) => {
    const submit = (body: unknown, formId = form.id, headers = {}) =>
      service.post(`${tier}/forms/${formId}/submissions`, body, { ...caller, headers });
    const answers = { email: 'ann@example.com' };

    it('accepts answers and gives their id', async () => {
      const reply = await submit({ source: 'site', answers });
      const sourceless = await submit({ answers });

      expect(reply.status).toBe(201);
      expect(reply.json).toEqual({ ok: true, submission_id: id('sub') });
      const sources = await service.get(`/v1/forms/${form.id}/submissions?limit=2`);
      expect(sources.json.submissions.map((one: { source: string }) => one.source)).toEqual(['api', 'site']);
      expect(sourceless.status).toBe(201);
    });

    it('names every refused answer, and stores nothing', async () => {
      const before = await service.countSubmissions();

      const wrong = await submit({ answers: { email: 'nobody', phone: '1' } });
      const missing = await submit({ answers: {} });
      const none = await submit({});
      const empty = await submit(undefined);
      const list = await submit([]);
      const longSource = await submit({ source: 's'.repeat(201), answers });
      const extra = await submit({ answers, colour: 'red' });
      const both = await submit({ answers: { email: 'nobody' }, colour: 'red' });
      const deep = await submit({ answers: { ...answers, deep: nested(40) } });

      expect(refusedAs(wrong)).toEqual([
        ['answers.email', 'invalid_string'],
        ['answers.phone', 'unrecognized_keys'],
      ]);
      expect(refusedAs(missing)).toEqual([['answers.email', 'invalid_type']]);
      expect(refusedAs(none)).toEqual([['answers', 'invalid_type']]);
      expect(refusedAs(empty)).toEqual([['answers', 'invalid_type']]);
      expect(refusedAs(list)).toEqual([['', 'invalid_type']]);
      expect(refusedAs(longSource)).toEqual([['source', 'too_big']]);
      expect(refusedAs(extra)).toEqual([['colour', 'unrecognized_keys']]);
      expect(refusedAs(both)).toEqual([
        ['colour', 'unrecognized_keys'],
        ['answers.email', 'invalid_string'],
      ]);
      expect(refusedAs(deep)).toEqual([[expect.stringMatching(/^answers\.deep/), 'custom']]);
      expect(await service.countSubmissions()).toBe(before);
    });

    it('knows drafts and unknown forms as little as slugs', async () => {
      const draft = await service.givenDraft();

      for (const formId of [draft.id, 'form_none', 'contact', draft.id.toUpperCase()]) {
        expect(deniedAs(await submit({ answers }, formId))).toEqual([404, 'not_found', 'not_found']);
      }
    });

    it('gives the first answer again under the same Idempotency-Key, for the same content alone', async () => {
      const key: string = crypto.randomUUID();
      const send = (body: unknown, name = key) => submit(body, form.id, { 'idempotency-key': name });

      const replies = await Promise.all(Array.from({ length: 5 }, () => send({ answers, source: 'crm' })));
      const otherAnswers = await send({ answers: { email: 'bob@example.com' }, source: 'crm' });
      const otherSource = await send({ answers });
      const longest = await send({ answers }, `${key}${'k'.repeat(255 - key.length)}`);
      const tooLong = await send({ answers }, 'k'.repeat(256));

      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
      expect(new Set(replies.map(({ json }) => json.submission_id)).size).toBe(1);
      if (row === '7') {
        expect(deniedAs(otherAnswers)).toEqual([409, 'validation_failed', 'conflict']);
        expect(deniedAs(otherSource)).toEqual([409, 'validation_failed', 'conflict']);
      } else {
        // It may be a stranger who guessed the key: another submission.
        const made = [replies[0], otherAnswers, otherSource].map((reply) => reply?.json.submission_id);
        expect(new Set(made).size).toBe(3);
      }
      expect(longest.status).toBe(201);
      expect(deniedAs(tooLong)).toEqual([400, 'validation_failed', 'bad_request']);
    });
  });

  it('4: never lists what is stored, for anybody', async () => {
    const read = await service.get(`/api/forms/${form.id}/submissions`);

    expect(deniedAs(read)).toEqual([404, 'not_found', 'method']);
    expect(read.headers.get('allow')).toBe('POST');
  });

  it('5: POST /api/demo stores under the demo form, flat or as any other', async () => {
    const person = { name: 'Ada', email: 'ada@example.com', message: 'Hello' };

    const flat = await service.post('/api/demo', person, anyone);
    const nested = await service.post('/api/demo', { answers: person, source: 'docs' }, anyone);
    const wrong = await service.post('/api/demo', { ...person, email: 'nobody' }, anyone);

    expect([flat.status, flat.json]).toEqual([201, { ok: true, submission_id: id('sub') }]);
    expect([nested.status, nested.json]).toEqual([201, { ok: true, submission_id: id('sub') }]);
    expect(refusedAs(wrong)).toEqual([['email', 'invalid_string']]);
    const key = await service.givenKey(['submissions:read'], 'demo');
    const list = await service.get('/v1/forms/form_demo/submissions', { key });
    expect(list.json.submissions).toMatchObject([
      { id: nested.json.submission_id, form_id: 'form_demo', answers: person, created_at: anIsoTime },
      { id: flat.json.submission_id },
    ]);
  });

  it('15: GET /f/:sessionId and /s/:sessionId show the same page', async () => {
    const { json } = await service.post(`/v1/forms/${form.id}/sessions`);
    const { session } = json;

    const page = await service.get(`/f/${session.id}`, anyone);
    const same = await service.get(`/s/${session.id}`, anyone);
    const unknown = await service.get('/f/sess_none', anyone);

    expect(new URL(session.url).pathname).toBe(`/f/${session.id}`);
    for (const shown of [page, same]) {
      expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(shown.text).toContain('name="email"');
    }
    expect([unknown.status, unknown.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
  });
});

/** A list in a list, and so on. */
function nested(depth: number): unknown {
  return depth === 0 ? [] : [nested(depth - 1)];
}
