import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: PublishedForm;

beforeAll(async () => {
  service = await startService();
  form = await service.givenPublishedForm();
});
afterAll(() => service[Symbol.asyncDispose]());

const answers = { email: 'a@example.com', message: 'Hello' };
const submit = (body: unknown, options = {}) =>
  service.post(`/api/forms/${form.id}/submissions`, body, options);

describe('POST /api/forms/:id/submissions', () => {
  it('stores the answers of anybody', async () => {
    const reply = await submit({ answers, source: 'website' }, { key: null });

    expect(reply.status).toBe(201);
    expect(reply.json).toEqual({ ok: true, submission_id: expect.stringMatching(/^sub_/) });
    const read = await service.get(`/v1/submissions/${reply.json.submission_id}`);
    expect(read.json.submission).toMatchObject({
      form_id: form.id,
      source: 'website',
      answers,
      status: 'accepted',
    });
  });

  it('names every refused answer, and what is wrong around them, at once', async () => {
    const before = await service.countSubmissions();

    const reply = await submit(
      { answers: { email: 'nobody', phone: '1' }, source: 5, colour: 'red' },
      { key: null },
    );

    expect(reply.status).toBe(422);
    const details: { path: string; code: string }[] = reply.json.error.details;
    expect(details.map(({ path, code }) => `${path} ${code}`).sort()).toEqual([
      'answers.email invalid_string',
      'answers.phone unrecognized_keys',
      'colour unrecognized_keys',
      'source invalid_type',
    ]);
    expect(await service.countSubmissions()).toBe(before);
  });

  it('says what is wrong in the words of the page where a language is preferred that it has', async () => {
    const asked = await service.givenPublishedForm({
      settings: { allowPartial: true },
      fields: [
        { id: 'email', type: 'email', required: true },
        { id: 'name', type: 'text', label: 'Name', required: true },
      ],
    });
    const path = `/api/forms/${asked.id}/submissions`;
    const { session } = (await service.post(`/v1/forms/${asked.id}/sessions`)).json;
    const wrong = { answers: { email: 'nobody', name: ' ' } };
    const details = async (url: string, language?: string) => {
      const headers = language === undefined ? {} : { 'accept-language': language };
      const reply = await service.post(url, wrong, { headers });
      return reply.json.error.details.map(({ message }: { message: string }) => message);
    };
    const german = ['Geben Sie eine E-Mail-Adresse ein, etwa name@example.com.', expect.any(String)];

    expect(await details(path, 'de-AT,en;q=0.5')).toEqual(german);
    expect(await details(`${path}?check=true`, 'de')).toEqual(german);
    expect(await details(`/v1/sessions/${session.id}/submit`, 'de')).toEqual(german);
    const held = { prefill: { email: 'nobody' }, metadata: { email: '\ud800' } };
    const ofSession = [
      await service.post(`/v1/forms/${asked.id}/sessions`, held, { headers: { 'accept-language': 'de' } }),
      await service.patch(`/v1/sessions/${session.id}`, held, { headers: { 'accept-language': 'de' } }),
      await service.patch(`/v1/sessions/${session.id}`, wrong, { headers: { 'accept-language': 'de' } }),
    ];
    const messages = ofSession.map(({ json }) => messagesAt(json, /^(prefill|answers)\.email$/));
    expect(messages).toEqual(Array(3).fill(german.slice(0, 1)));
    expect(messagesAt(ofSession[0]?.json, /^metadata/)).toEqual([expect.stringContaining('Unicode')]);
    expect(await details(path, 'en')).toEqual([
      'Enter an email address, like name@example.com.',
      expect.any(String),
    ]);
    for (const unspoken of [undefined, '*', 'tlh']) {
      expect(await details(path, unspoken)).toEqual(['Must be an email address', 'Required']);
    }
  });

  it('says so too of unknown fields, of options that are gone and of files', async () => {
    const options = ['Post', 'Email'].map((label) => ({ label, value: label.toLowerCase() }));
    const rows = [{ label: 'Home', value: 'home' }];
    const asked = await service.givenPublishedForm({
      fields: [
        { id: 'way', type: 'radio', options },
        { id: 'ways', type: 'multi_select', options },
        { id: 'order', type: 'ranking', options },
        { id: 'grid', type: 'matrix', rows, options },
        { id: 'home', type: 'address' },
        { id: 'cv', type: 'file', accept: ['application/pdf'], maxBytes: 20 },
      ],
    });
    const german = { headers: { 'accept-language': 'de' } };
    const answers = {
      way: 'webhooks',
      ways: ['email', 'fax'],
      order: ['post', 'pigeon'],
      grid: { home: 'smoke' },
      wya: 1,
      zzz: 2,
      home: { line1: 'A', city: 'B', postal_code: '1', country: 'CH', citty: 'x' },
      cv: { upload_id: 'upl_01jd3kvz8nf9t8x1v0c9m2q4ra' },
    };
    const refused = await service.post(`/api/forms/${asked.id}/submissions`, { answers }, german);
    const messages = Object.fromEntries(
      refused.json.error.details.map(({ path, message }: Record<string, string>) => [path, message]),
    );

    expect(messages).toMatchObject({
      'answers.way': '„webhooks“ kann nicht mehr gewählt werden.',
      'answers.ways.1': '„fax“ kann nicht mehr gewählt werden.',
      'answers.order.1': '„pigeon“ kann nicht mehr gewählt werden.',
      'answers.grid.home': '„smoke“ kann nicht mehr gewählt werden.',
      'answers.wya': 'Dieses Formular hat keine Frage „wya“. Meinten Sie way?',
      'answers.zzz': 'Dieses Formular hat keine Frage „zzz“.',
      'answers.home.citty': expect.stringContaining('„home.citty“'),
    });
  });

  it.each([[{}], [{ answers: null }], [{ answers: [] }], [{ answers: 'a' }]])(
    'needs answers: %j',
    async (body) => {
      const reply = await submit(body);

      expect(reply.status).toBe(422);
      expect(reply.json.error.details).toMatchObject([{ path: 'answers', code: 'invalid_type' }]);
    },
  );

  it('gives the first answer again under the same Idempotency-Key, and refuses another content', async () => {
    const headers = { 'idempotency-key': 'order-1' };
    const withKey = { headers, key: service.key };

    const first = await submit({ answers }, withKey);
    const again = await submit({ answers }, withKey);
    const other = await submit({ answers: { email: 'b@example.com' } }, withKey);

    expect(again.json).toEqual(first.json);
    expect([other.status, other.json.error.reason]).toEqual([409, 'conflict']);
  });

  it.each([['k'.repeat(256)], ['']])('refuses an Idempotency-Key that is too long or empty', async (key) => {
    const reply = await submit({ answers }, { headers: { 'idempotency-key': key } });

    expect([reply.status, reply.json.error.reason]).toEqual([400, 'bad_request']);
    expect(reply.json.error.details[0].path).toBe('Idempotency-Key');
  });

  it('knows no draft and no unknown form, whatever else is wrong', async () => {
    const draft = await service.givenDraft();

    for (const id of [draft.id, 'form_none']) {
      const good = await service.post(`/api/forms/${id}/submissions`, { answers });
      const bad = await service.post(`/api/forms/${id}/submissions`, { nothing: 1 });

      expect([good.status, bad.status]).toEqual([404, 404]);
    }
  });

  it('lets only the allowed origins post, and those without one', async () => {
    const only = await service.givenPublishedForm({ settings: { allowedOrigins: ['https://site.example'] } });
    const from = (origin: string) =>
      service.post(`/api/forms/${only.id}/submissions`, { answers }, { headers: origin ? { origin } : {} });

    expect((await from('https://site.example')).status).toBe(201);
    expect((await from('')).status).toBe(201);
    const other = await from('https://evil.example');
    expect([other.status, other.json.error.reason]).toEqual([401, 'origin_not_allowed']);
  });

  it('ends when the form is closed', async () => {
    const closed = await service.givenPublishedForm({ settings: { closesAt: '2020-01-01T00:00:00Z' } });

    const reply = await service.post(`/api/forms/${closed.id}/submissions`, { answers });

    expect([reply.status, reply.json.error.reason]).toEqual([410, 'closed']);
  });
});

describe('POST /v1/forms/:id/submissions', () => {
  it('does the same with a key of the project, and refuses everybody else', async () => {
    const path = `/v1/forms/${form.id}/submissions`;

    const done = await service.post(path, { answers });
    const stranger = await service.post(path, { answers }, { key: null });
    const strangerWithNonsense = await service.post(path, { nonsense: 1 }, { key: null });
    const reader = await service.post(
      path,
      { answers },
      { key: await service.givenKey(['submissions:read']) },
    );
    const neighbour = await service.post(path, { answers }, { key: await service.givenKey(['*'], 'other') });

    expect(done.status).toBe(201);
    expect([stranger.status, stranger.json.error.reason]).toEqual([401, 'missing_key']);
    expect(strangerWithNonsense.status).toBe(401);
    expect([reader.status, reader.json.error.reason]).toEqual([401, 'insufficient_scope']);
    expect(neighbour.status).toBe(404);
  });
});

describe('POST /api/demo', () => {
  it('takes the answers flat or as any form’s', async () => {
    const flat = { name: 'Ada', email: 'ada@example.com', message: 'Hi' };

    expect((await service.post('/api/demo', flat, { key: null })).status).toBe(201);
    expect((await service.post('/api/demo', { answers: flat, source: 'site' }, { key: null })).status).toBe(
      201,
    );
  });

  it('names what is wrong where it stands', async () => {
    const flat = await service.post('/api/demo', { name: 'Ada', email: 'ada', message: 'Hi', phone: '1' });
    const nested = await service.post('/api/demo', { answers: { name: 'Ada', email: 'ada', message: 'Hi' } });

    expect([flat.status, nested.status]).toEqual([422, 422]);
    expect(flat.json.error.details.map(({ path }: { path: string }) => path)).toEqual(['email', 'phone']);
    expect(nested.json.error.details.map(({ path }: { path: string }) => path)).toEqual(['answers.email']);
  });
});

describe('GET /v1/forms/:id/submissions', () => {
  it('lists by answers, with operators and the total, and names what it refuses as the query does', async () => {
    const fields = [
      { id: 'topic', type: 'radio', options: ['sales', 'press'].map((value) => ({ label: value, value })) },
      { id: 'score', type: 'number' },
    ];
    const { id } = await service.givenPublishedForm({ fields });
    for (const [topic, score] of [
      ['sales', 1],
      ['press', 2],
      ['sales', 3],
    ])
      await service.post(`/api/forms/${id}/submissions`, { answers: { topic, score } });
    const list = (query: string) => service.get(`/v1/forms/${id}/submissions?${query}`);
    const scores = async (query: string) =>
      (await list(query)).json.submissions.map((each: { answers: { score: number } }) => each.answers.score);
    const refusals = async (query: string) => {
      const { status, json } = await list(query);
      return [status, ...json.error.details.map(({ path }: { path: string }) => path)];
    };

    expect(await scores('filter[topic]=sales')).toEqual([3, 1]);
    expect(await scores('filter%5Btopic%5D=sales&filter%5Bscore%5D%5Bgte%5D=2')).toEqual([3]);
    expect(await scores('filter[score][in]=1,2')).toEqual([2, 1]);
    const counted = await list('filter[topic][eq]=sales&total=true&limit=1');
    expect([counted.json.total, counted.json.submissions.length]).toEqual([2, 1]);
    expect((await list('total=true')).json.total).toBe(3);
    expect((await list('')).json).not.toHaveProperty('total');
    expect(await refusals('filter[topics]=sales')).toEqual([400, 'filter[topics]']);
    expect(await refusals('filter[score]=1&filter[topic][lte]=a')).toEqual([400, 'filter[topic][lte]']);
    expect(await refusals('filter[score][gte]=many')).toEqual([400, 'filter[score][gte]']);
    expect(await refusals('filter[score][above]=1')).toEqual([400, 'filter[score][above]']);
    expect(await refusals('filter[score]=1&filter[score]=2')).toEqual([400, 'filter[score]']);
    expect(await refusals('filter=1')).toEqual([400, 'filter']);
    expect(await refusals('filters[score]=1')).toEqual([400, 'filters[score]']);
    expect(await refusals('filter[score]=1&offset=1')).toEqual([400, 'offset']);
    expect(await refusals('filter[__proto__]=1')).toEqual([400, 'filter[__proto__]']);
  });

  it('lists newest first, by offset and by cursor, with filters', async () => {
    const listed = await service.givenPublishedForm();
    for (const source of ['a', 'b', 'a'])
      await service.post(`/api/forms/${listed.id}/submissions`, { answers, source });
    const list = async (query: string) =>
      (await service.get(`/v1/forms/${listed.id}/submissions${query}`)).json;

    const all = await list('');
    const first = await list('?limit=2');
    const second = await list(`?limit=2&cursor=${first.next_cursor}`);

    expect(all.submissions.map(({ source }: { source: string }) => source)).toEqual(['a', 'b', 'a']);
    expect([...first.submissions, ...second.submissions]).toEqual(all.submissions);
    expect([all.next_cursor, second.next_cursor]).toEqual([null, null]);
    expect((await list('?offset=1')).submissions).toEqual(all.submissions.slice(1));
    expect((await list('?source=a')).submissions.length).toBe(2);
    expect((await list('?status=spam')).submissions).toEqual([]);
    expect((await list('?created_before=2020-01-01')).submissions).toEqual([]);
    expect((await list('?limit=1000&created_after=2020-01-01T00:00:00%2B02:00')).submissions.length).toBe(3);
    expect((await list('?_ga=1&offset=99999999999999')).submissions).toEqual([]);
  });

  it.each([
    ['limit=0'],
    ['limit=-1'],
    ['limit=1.5'],
    ['limit=ten'],
    ['limit=1&limit=2'],
    ['offset=-1'],
    ['offset=x'],
    ['cursor=garbage'],
    ['status=unknown'],
    ['created_after=yesterday'],
    ['created_before=2026-02-30'],
    ['created_before=2026-01-01T00:00:00'],
  ])('refuses %s', async (query) => {
    const reply = await service.get(`/v1/forms/${form.id}/submissions?${query}`);

    expect([reply.status, reply.json.error.reason]).toEqual([400, 'bad_request']);
    expect(reply.json.error.details[0].path).toBe(query.split('=')[0]);
  });

  it('demands a key with submissions:read, before it looks at the query', async () => {
    const path = `/v1/forms/${form.id}/submissions?limit=0`;

    expect((await service.get(path, { key: null })).status).toBe(401);
    expect((await service.get(path, { key: await service.givenKey(['forms:read']) })).status).toBe(401);
    expect((await service.get('/v1/forms/form_none/submissions')).status).toBe(404);
  });
});

describe('one submission', () => {
  it('is read and deleted once', async () => {
    const { json } = await submit({ answers });
    const path = `/v1/submissions/${json.submission_id}`;

    const read = await service.get(path);
    const stranger = await service.get(path, { key: await service.givenKey(['*'], 'other') });
    const deleted = await service.delete(path);
    const gone = await service.get(path);

    expect(read.status).toBe(200);
    expect(stranger.status).toBe(404);
    expect([deleted.status, deleted.json]).toEqual([200, { ok: true }]);
    expect([gone.status, (await service.delete(path)).status]).toEqual([404, 404]);
  });
});

describe('GET /v1/forms/:id/submissions/export', () => {
  it('sends CSV or NDJSON as a file', async () => {
    const exported = await service.givenPublishedForm();
    await service.post(`/api/forms/${exported.id}/submissions`, {
      answers: { email: 'a@example.com', message: '=1+1' },
    });
    const path = `/v1/forms/${exported.id}/submissions/export`;

    const csv = await service.get(path);
    const ndjson = await service.get(`${path}?format=ndjson`);
    const head = await service.call('HEAD', path);

    expect([csv.status, csv.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    expect(csv.headers.get('content-disposition')).toBe(`attachment; filename="${exported.id}.csv"`);
    expect(csv.text).toContain("a@example.com,'=1+1,1,\r\n");
    expect(JSON.parse(ndjson.text)).toMatchObject({ form_id: exported.id, status: 'accepted' });
    expect([head.status, head.text]).toEqual([200, '']);
  });

  it('refuses another format, a stranger and an unknown form before the first byte', async () => {
    const path = `/v1/forms/${form.id}/submissions/export`;

    expect((await service.get(`${path}?format=xml`)).status).toBe(400);
    expect((await service.get(`${path}?format=xml`, { key: null })).status).toBe(401);
    expect((await service.get('/v1/forms/form_none/submissions/export')).status).toBe(404);
  });
});

/** The messages of an error's details whose paths fit. */
function messagesAt({ error }: { error: { details: { path: string; message: string }[] } }, path: RegExp) {
  return error.details.filter((each) => path.test(each.path)).map(({ message }) => message);
}
