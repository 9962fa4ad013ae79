import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: PublishedForm;

beforeAll(async () => {
  service = await startService();
  form = await service.givenPublishedForm({
    fields: [
      { id: 'email', type: 'email', required: true },
      { id: 'age', type: 'number' },
      { id: 'terms', type: 'checkbox' },
      {
        id: 'pets',
        type: 'multi_select',
        options: [
          { label: 'Cat', value: 'cat' },
          { label: 'Dog', value: 'dog' },
        ],
      },
      { id: 'cv', type: 'file' },
    ],
    settings: { allowedOrigins: ['https://site.example', 'https://shop.example'] },
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', origin: 'https://site.example' };
const post = (body: BodyOfForm, headers: Record<string, string> = html, id = form.id) =>
  service.post(`/api/forms/${id}/submissions`, body, { key: null, headers });

describe('a post in parts', () => {
  const parts = [
    'form-data',
    'form-data; name',
    'form-data; filename="cv.pdf"',
    'form-data; name; filename="cv.pdf"',
    'form-data;;;;',
  ];

  it.each(parts)('is refused if one has no name (%s), and the service goes on', async (disposition) => {
    const body = `--a\r\nContent-Disposition: ${disposition}\r\n\r\nx\r\n--a--\r\n`;

    const refused = await post(body, { ...html, 'content-type': 'multipart/form-data; boundary=a' });

    expect(refused.status).toBe(400);
    expect((await service.get('/health')).json).toEqual({ ok: true });
  });
});

describe('a static site’s own form', () => {
  it('is read by the types of its fields, and thanked by a page', async () => {
    const body = new URLSearchParams(
      'email=a@example.com&age=42&terms=on&pets=cat&pets=dog&_source=footer&unknown=1',
    );

    const reply = await post(body);

    expect([reply.status, reply.headers.get('content-type')]).toEqual([201, 'text/html; charset=utf-8']);
    const list = await service.get(`/v1/forms/${form.id}/submissions?limit=1`);
    expect(list.json.submissions[0]).toMatchObject({
      source: 'footer',
      answers: { email: 'a@example.com', age: 42, terms: true, pets: ['cat', 'dog'] },
    });
  });

  it('leads on to _next on its own origin or an allowed one, and nowhere else', async () => {
    const next = async (_next: string) => {
      const reply = await post(new URLSearchParams({ email: 'a@example.com', _next }));
      return [reply.status, reply.headers.get('location')];
    };

    expect(await next('https://site.example/thanks')).toEqual([303, 'https://site.example/thanks']);
    expect(await next('https://shop.example/thanks')).toEqual([303, 'https://shop.example/thanks']);
    expect(await next('https://evil.example/')).toEqual([201, null]);
    expect(await next('javascript:alert(1)')).toEqual([201, null]);
  });

  it('says on the page of thanks and in the log which address was not followed', async () => {
    const own = await service.givenPublishedForm({
      settings: { redirectUrl: 'https://shop.example/thanks' },
    });
    const inputs = { email: 'a@example.com' };

    const elsewhere = await post(new URLSearchParams({ ...inputs, _next: 'https://evil.example/' }));
    const setting = await post(new URLSearchParams(inputs), html, own.id);
    const followed = await post(
      new URLSearchParams({ ...inputs, _next: 'https://site.example/' }),
      html,
      own.id,
    );
    const nothing = await post(new URLSearchParams(inputs));

    expect(elsewhere.text).toContain('“_next” was not followed');
    expect(setting.text).toContain('“redirectUrl” was not followed');
    expect(followed.headers.get('location')).toBe('https://site.example/');
    expect(nothing.text).not.toContain('was not followed');
    const lines = service.logged.filter((line) => line.includes('page of thanks'));
    // A test before this one has been refused an address, too.
    expect(lines.slice(-2).map((line) => JSON.parse(line))).toMatchObject([
      { formId: form.id, name: '_next' },
      { formId: own.id, name: 'redirectUrl' },
    ]);
    expect(lines.join()).not.toContain('evil.example');
  });

  it('goes back to _error with the refused fields and their codes, and no values', async () => {
    const back = async (_error: string, more: Record<string, string> = {}, headers = html) => {
      const body = new URLSearchParams({ email: 'nobody', age: 'old', ...more, _error });
      const reply = await post(body, headers);
      return [reply.status, reply.headers.get('location')];
    };
    const pairs = 'error=email%3Ainvalid_string&error=age%3Ainvalid_type';

    expect(await back('https://site.example/again?a=1&error=old&error=older')).toEqual([
      303,
      `https://site.example/again?a=1&${pairs}`,
    ]);
    expect(await back('/again#form')).toEqual([303, `https://site.example/again?${pairs}#form`]);
    expect(await back('https://shop.example/')).toEqual([303, `https://shop.example/?${pairs}`]);
    expect(await back('https://evil.example/')).toEqual([422, null]);
    expect(await back('javascript:alert(1)')).toEqual([422, null]);
    expect(await back('/again', {}, { ...html, accept: 'application/json' })).toEqual([422, null]);
    // Nothing that names a field is wrong with it: the site's page could not say what is.
    expect(await back('/again', { email: 'a@example.com', age: '1', _source: 'x'.repeat(201) })).toEqual([
      422,
      null,
    ]);
  });

  it('names a refused file to _error, too, and at most 20 fields', async () => {
    const many = await service.givenPublishedForm({
      fields: [...Array(25).keys()].map((index) => ({ id: `f${index}`, type: 'number', required: true })),
    });
    const images = await service.givenPublishedForm({
      fields: [{ id: 'photo', type: 'file', accept: ['image/png'] }],
    });
    const file = new FormData();
    file.set('photo', new File(['text'], 'a.txt', { type: 'text/plain' }));
    file.set('_error', '/again');

    const errors = async (body: BodyOfForm, id: string) => {
      const location = (await post(body, html, id)).headers.get('location') ?? '';
      return new URL(location).searchParams.getAll('error');
    };

    expect(await errors(new URLSearchParams({ f0: '1', _error: '/again' }), many.id)).toEqual(
      [...Array(20).keys()].map((index) => `f${index + 1}:invalid_type`),
    );
    expect(await errors(file, images.id)).toEqual(['photo:custom']);
  });

  it('is never sent to _error where its origin, its size or the form’s state is what is refused', async () => {
    const closed = await service.givenPublishedForm({ settings: { closesAt: '2020-01-01T00:00:00Z' } });
    const _error = 'https://site.example/again';
    const body = () => new URLSearchParams({ email: 'nobody', _error });

    const replies = [
      await post(body(), { ...html, origin: 'https://evil.example' }),
      await post(new URLSearchParams({ email: 'x'.repeat(300_000), _error })),
      await post(new URLSearchParams({ email: 'a@example.com', _error }), html, closed.id),
    ];

    expect(replies.map(({ status, headers }) => [status, headers.get('location')])).toEqual([
      [401, null],
      [413, null],
      [410, null],
    ]);
  });

  it('learns what is wrong with an origin that is none, or another name of loopback', async () => {
    const local = await service.givenPublishedForm({
      settings: { allowedOrigins: ['http://localhost:3000'] },
    });
    const from = async (origin: string, accept = 'text/html') =>
      post(new URLSearchParams({ email: 'a@example.com' }), { accept, origin }, local.id);

    const none = await from('null');
    const other = await from('http://127.0.0.1:3000', 'application/json');

    expect(none.status).toBe(401);
    expect(none.text).toContain('This page has no origin (Origin: null): it was opened as a file');
    expect(other.json.error).toMatchObject({
      reason: 'origin_not_allowed',
      message: expect.stringMatching(/http:\/\/127\.0\.0\.1:3000 and http:\/\/localhost:3000 as two/),
    });
    expect((await from('http://localhost:3000', 'application/json')).status).toBe(201);
  });

  it.each(['a&', '&', '%41=&'])(
    'is refused with more inputs than are taken, as many as fit: %s',
    async (input) => {
      const body = input.repeat(Math.floor((768 * 1024) / input.length));

      const reply = await post(body, {
        accept: 'application/json',
        origin: 'https://site.example',
        'content-type': 'application/x-www-form-urlencoded',
      });

      expect([reply.status, reply.json.error.reason]).toEqual([413, 'too_large']);
    },
  );

  it('gets JSON where that is preferred', async () => {
    const reply = await post(new URLSearchParams({ email: 'a@example.com' }), {
      ...html,
      accept: 'application/json',
    });

    expect(reply.json).toEqual({ ok: true, submission_id: expect.any(String) });
  });

  it('gets its refusals as pages, or as JSON where that is preferred', async () => {
    const wrong = () => new URLSearchParams({ email: 'nobody' });

    const page = await post(wrong());
    const json = await post(wrong(), { ...html, accept: 'application/json' });
    const unknown = await post(wrong(), html, 'form_none');
    const origin = await post(wrong(), { ...html, origin: 'https://evil.example' });
    const broken = await post('nothing', { ...html, 'content-type': 'multipart/form-data' });
    const large = await post(new URLSearchParams({ email: 'x'.repeat(300_000) }));

    for (const [reply, status] of [
      [page, 422],
      [unknown, 404],
      [origin, 401],
      [broken, 400],
      [large, 413],
    ] as const) {
      expect([reply.status, reply.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8']);
    }
    expect([json.status, json.json.error.details[0].path]).toEqual([422, 'answers.email']);
  });

  it('keeps a submission with a filled _gotcha as spam, and answers it like any other', async () => {
    const reply = await post(new URLSearchParams({ email: 'spam@example.com', _gotcha: 'x' }), {
      ...html,
      accept: 'application/json',
    });

    expect(reply.status).toBe(201);
    expect((await service.get(`/v1/submissions/${reply.json.submission_id}`)).json.submission.status).toBe(
      'spam',
    );
  });

  it('brings its file along', async () => {
    const body = new FormData();
    body.set('email', 'a@example.com');
    body.set('cv', new File(['my life'], 'cv.txt', { type: 'text/plain' }));

    const reply = await post(body, { ...html, accept: 'application/json' });

    expect(reply.status).toBe(201);
    const { cv } = (await service.get(`/v1/submissions/${reply.json.submission_id}`)).json.submission.answers;
    expect(cv).toMatchObject({ filename: 'cv.txt', size: 7 });
    const file = await service.get(new URL(cv.url).pathname);
    expect([file.text, file.headers.get('content-disposition')]).toEqual([
      'my life',
      'attachment; filename=cv.txt',
    ]);
  });

  it('may leave its file inputs empty, however many there are', async () => {
    const body = new FormData();
    body.set('email', 'a@example.com');
    for (let count = 0; count < 30; count += 1) body.append('cv', new File([], ''));

    expect((await post(body)).status).toBe(201);
  });
});

describe('the names of a site’s own form', () => {
  const json = { ...html, accept: 'application/json' };

  it('are taken as sites write them, of files too', async () => {
    const body = new FormData();
    body.set('Email', 'a@example.com');
    body.append('pets[]', 'cat');
    body.append('pets[]', 'dog');
    body.set('cv[]', new File(['my life'], 'cv.txt', { type: 'text/plain' }));

    const reply = await post(body, json);

    const { submission } = (await service.get(`/v1/submissions/${reply.json.submission_id}`)).json;
    expect(submission.answers).toMatchObject({
      email: 'a@example.com',
      pets: ['cat', 'dog'],
      cv: { filename: 'cv.txt' },
    });
    expect(reply.json.ignored).toBeUndefined();
  });

  it('that no field has are told to who reads JSON, without the site’s controls', async () => {
    const reply = await post(
      new URLSearchParams({
        email: 'a@example.com',
        submit: 'Send',
        _token: 'x',
        [`long${'x'.repeat(99)}`]: '1',
      }),
      json,
    );

    expect(reply.json).toEqual({
      ok: true,
      submission_id: expect.any(String),
      ignored: ['submit', `long${'x'.repeat(60)}`],
    });
  });

  it('refuse the post if none is a field’s, as JSON and as a page, and store nothing', async () => {
    const own = await service.givenPublishedForm({
      fields: [
        { id: 'message', type: 'text' },
        { id: 'ok', type: 'checkbox' },
      ],
    });
    const body = () => new URLSearchParams({ 'your-message': '<b>secret</b>', '<i>': '1', _error: '/again' });

    const refused = await post(body(), json, own.id);
    const page = await post(body(), html, own.id);
    const spam = await post(new URLSearchParams({ other: '1', _gotcha: 'x' }), json, own.id);

    expect(refused.status).toBe(422);
    expect(refused.json.error.details).toEqual([
      {
        path: 'answers',
        code: 'unrecognized_keys',
        message: 'The post has none of the form’s fields `message`, `ok`, but `your-message`, `<i>`',
      },
    ]);
    expect([page.status, page.headers.get('location')]).toEqual([422, null]);
    expect(page.text).toContain('`&lt;i&gt;`');
    expect(page.text).not.toContain('<i>`');
    expect(spam.status).toBe(201);
    const list = await service.get(`/v1/forms/${own.id}/submissions`);
    expect(list.json.submissions).toEqual([]);
  });

  it('may all be missing where a form has boxes alone, and where it is closed that is what is said', async () => {
    const boxes = await service.givenPublishedForm({ fields: [{ id: 'ok', type: 'checkbox' }] });
    const closed = await service.givenPublishedForm({ settings: { closesAt: '2020-01-01T00:00:00Z' } });
    const body = () => new URLSearchParams({ send: 'yes' });

    expect((await post(body(), json, boxes.id)).json.ignored).toEqual(['send']);
    expect((await post(body(), json, closed.id)).status).toBe(410);
  });

  it('are those of the fields where the form is shown again, with what was chosen', async () => {
    const body = new URLSearchParams([
      ['Email', 'nobody'],
      ['pets[]', 'cat'],
      ['other', '1'],
    ]);

    const { text } = await post(body);

    expect(text).toMatch(/name="email"[^>]*value="nobody"/);
    expect(text).toMatch(/name="pets" value="cat" checked|value="cat"[^>]* checked/);
    expect(text).toContain('<input type="hidden" name="other" value="1">');
    expect(text).not.toMatch(/name="Email"|name="pets\[\]"/);
  });
});

describe('POST /api/forms/:id/uploads', () => {
  const upload = (query: string, body: BodyOfForm, headers = {}) =>
    service.post(`/api/forms/${form.id}/uploads${query}`, body, { key: null, headers });

  it('stores a file that comes as an HTML form or as it is', async () => {
    const body = new FormData();
    body.set('field', 'cv');
    body.set('file', new File(['content'], 'a.txt'));

    const inForm = await upload('', body);
    const raw = await upload('?field=cv&filename=b.txt', Buffer.from('content'), {
      'content-type': 'text/plain',
    });

    expect([inForm.status, raw.status]).toEqual([201, 201]);
    expect(inForm.json.upload).toMatchObject({
      upload_id: expect.stringMatching(/^upl_/),
      filename: 'a.txt',
      size: 7,
    });
    expect(raw.json.upload.sha256).toBe(inForm.json.upload.sha256);
  });

  it('refuses what misses a part, names another field, is too large, or goes nowhere', async () => {
    const file = () => Buffer.from('content');

    const fieldLast = new FormData();
    fieldLast.set('file', new File(['content'], 'a.txt'));
    fieldLast.set('field', 'cv');

    const noField = await upload('', file());
    const late = await upload('', fieldLast);
    const noFile = await upload('?field=cv', new URLSearchParams({ field: 'cv' }));
    const otherField = await upload('?field=email', file());
    const tooLarge = await upload('?field=cv', Buffer.alloc(10 * 1024 * 1024 + 1));
    const nowhere = await service.post('/api/forms/form_none/uploads?field=cv', file());

    expect([noField.status, noField.json.error.details[0].path]).toEqual([422, 'field']);
    expect([late.status, late.json.error.details[0].path]).toEqual([422, 'field']);
    expect([noFile.status, noFile.json.error.details[0].path]).toEqual([422, 'file']);
    expect(otherField.status).toBe(422);
    expect([tooLarge.status, tooLarge.json.error.reason]).toEqual([413, 'too_large']);
    expect(tooLarge.json.error.details).toMatchObject([{ path: 'answers.cv', code: 'too_big' }]);
    expect((await upload('?field=cv', Buffer.alloc(0))).json.error.details).toMatchObject([
      { path: 'answers.cv', code: 'too_small' },
    ]);
    expect(nowhere.status).toBe(404);
  });

  it('shows files to nobody without a key of the project', async () => {
    const { json } = await upload('?field=cv', Buffer.from('content'));
    const path = `/v1/uploads/${json.upload.upload_id}`;

    expect((await service.get(path, { key: null })).status).toBe(401);
    expect((await service.get(path, { key: await service.givenKey(['*'], 'other') })).status).toBe(404);
    expect((await service.get('/v1/uploads/upl_none')).status).toBe(404);
  });
});

type BodyOfForm = URLSearchParams | FormData | Buffer | string;
