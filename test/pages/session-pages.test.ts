import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answersOf } from '../support/browser.ts';
import { forged } from '../support/forged.ts';
import { startService, type TestService } from '../support/server.ts';
import { cutOff, sendUnended } from '../support/wire.ts';

let service: TestService;
/** How far the service's clock is ahead, in milliseconds. */
let ahead = 0;
beforeAll(async () => {
  service = await startService({ now: () => Date.now() + ahead });
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the page of a session', () => {
  it('shows the form at both addresses, with prefill, and keeps hidden values to itself', async () => {
    const session = await givenSession({
      fields: [
        { id: 'email', type: 'email', required: true, agentHint: 'hint-for-agents' },
        { id: 'token', type: 'hidden' },
        { id: 'campaign', type: 'text', hidden: true, defaultValue: 'default-of-hidden' },
      ],
      session: {
        prefill: { email: 'ada@example.com', token: 'hidden-token' },
        metadata: { a: 'metadata-value' },
      },
    });

    for (const address of ['f', 's']) {
      const page = await service.get(`/${address}/${session.id}`, { key: null });
      expect(page.status).toBe(200);
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(page.text).toContain('value="ada@example.com"');
      expect(page.text).not.toMatch(/hidden-token|default-of-hidden|hint-for-agents|metadata-value|campaign/);
    }
  });

  it('says at once that its link is not complete where a hidden field needs a value that nobody can give', async () => {
    const fields = [
      { id: 'email', type: 'email' },
      { id: 'token', type: 'hidden', required: true, label: 'Your invitation' },
    ];
    const form = await service.givenPublishedForm({ fields });
    const { id: sessionId } = (await service.post('/v1/sessions', { form_id: form.id })).json.session;
    const german = { key: null, headers: { 'accept-language': 'de' } };

    for (const page of [
      await service.get(`/f/${form.id}`, { key: null }),
      await service.get(`/f/${form.id}?token=`, { key: null }),
      await service.get(`/f/${sessionId}`, { key: null }),
    ]) {
      expect(page.status).toBe(400);
      expect(page.text).toContain('This link is not complete');
      expect(page.text).toContain('Your invitation');
      expect(page.text).not.toContain('name="email"');
    }
    expect((await service.get(`/f/${form.id}`, german)).text).toContain('Dieser Link ist unvollständig');
    expect((await service.get(`/f/${form.id}?token=t1`, { key: null })).text).toContain('name="email"');
    expect((await service.get(`/v1/forms/${form.id}`)).json.form.share.warnings).toEqual([
      expect.stringContaining('?token='),
    ]);
  });

  it('is kept nowhere, framed by nobody, and runs nothing but its own script', async () => {
    const session = await givenSession({});

    const { headers } = await service.get(`/f/${session.id}`);

    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('set-cookie')).toBeNull();
    const policy = headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("form-action 'self' https:");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).not.toContain('unsafe');
  });

  it.each<[string, object]>([
    ['a HEAD request', { method: 'HEAD' }],
    ['a page fetched ahead', { headers: { 'sec-purpose': 'prefetch;prerender' } }],
    [
      'a link preview',
      { headers: { 'user-agent': 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)' } },
    ],
  ])('is not noted as opened by %s, but by a browser after it', async (_, request) => {
    const { id } = await givenSession({});
    const openedAt = async () => (await service.get(`/v1/sessions/${id}`)).json.session.opened_at;

    await fetch(`${service.url}/f/${id}`, request);
    expect(await openedAt()).toBeNull();

    await fetch(`${service.url}/f/${id}`, { headers: { 'user-agent': 'Mozilla/5.0 Firefox/145.0' } });
    expect(await openedAt()).toMatch(/Z$/);
  });

  it('may be framed by the origins that the form names', async () => {
    const session = await givenSession({ settings: { embedOrigins: ['https://shop.example'] } });

    const { headers } = await service.get(`/f/${session.id}`);

    expect(headers.get('content-security-policy')).toContain('frame-ancestors https://shop.example');
    expect(headers.get('x-frame-options')).toBeNull();
  });

  it('names each refused answer beside its field, keeps what was typed, and stores nothing', async () => {
    const session = await givenSession({
      fields: [
        { id: 'email', type: 'email', required: true },
        { id: 'age', type: 'number', min: 18 },
        { id: 'consent', type: 'checkbox', required: true },
      ],
    });

    const page = await postForm(session.id, {
      email: 'not an address',
      age: '7',
      _shown: 'email age consent',
    });

    expect(page.status).toBe(422);
    expect(page.text).toContain('<title>Error: Contact</title>');
    expect(page.text).toContain('<a href="#email.0">Email – Enter an email address');
    expect(page.text).toContain('Enter 18 or more.');
    expect(page.text).toContain('Tick the box to continue.');
    expect(page.text).toContain('value="not an address"');
    expect(page.text).toContain('aria-describedby="email.error"');
    expect(await statusOf(session.id)).toBe('open');
  });

  it('thanks the person with a copy of the answers, and shows no answers afterwards', async () => {
    const session = await givenSession({
      settings: { successMessage: 'See you soon' },
      fields: [
        { id: 'email', type: 'email' },
        { id: 'secret', type: 'text', hidden: true, defaultValue: 'kept-back' },
      ],
    });

    const ending = await postForm(session.id, {
      email: 'ada@example.com',
      secret: 'forged',
      _shown: 'email',
    });
    const again = await service.get(`/f/${session.id}`);
    const second = await postForm(session.id, { email: 'eve@example.com' });

    expect(ending.status).toBe(200);
    expect(ending.text).toMatch(/See you soon[\s\S]*ada@example\.com/);
    expect(ending.text).not.toMatch(/kept-back|forged/);
    expect([again.status, second.status]).toEqual([409, 409]);
    expect(again.text).toContain('Already submitted');
    expect(again.text).not.toContain('ada@example.com');
    const { session: stored } = (await service.get(`/v1/sessions/${session.id}`)).json;
    const { submission } = (await service.get(`/v1/submissions/${stored.submission_id}`)).json;
    expect(submission.answers).toEqual({ email: 'ada@example.com', secret: 'kept-back' });
  });

  it('gives a page that is sent twice its ending twice, and makes one submission', async () => {
    const session = await givenSession({ settings: { successMessage: 'See you soon' } });
    const page = await service.get(`/f/${session.id}`);
    const [, issued = ''] = /name="_issued" value="([^"]+)"/.exec(page.text) ?? [];
    const inputs = { email: 'ada@example.com', message: '', _shown: 'email message', _issued: issued };

    const both = await Promise.all([postForm(session.id, inputs), postForm(session.id, inputs)]);
    const reloaded = await postForm(session.id, inputs);
    const other = await postForm(session.id, { ...inputs, email: 'eve@example.com' });
    const unseen = await postForm(session.id, { ...inputs, _issued: '' });

    for (const { status, text } of [...both, reloaded]) {
      expect([status, /See you soon[\s\S]*ada@example\.com/.test(text)]).toEqual([200, true]);
    }
    expect([other.status, unseen.status]).toEqual([409, 409]);
    expect(other.text + unseen.text).not.toContain('ada@example.com');
    const { submissions } = (await service.get(`/v1/forms/${session.form_id}/submissions`)).json;
    expect(submissions).toHaveLength(1);
  });

  it('speaks the language that the person prefers, unless the form has its own', async () => {
    const fields = [
      { id: 'news', type: 'boolean' },
      { id: 'day', type: 'date' },
    ];
    const answers = { news: 'true', day: '2026-12-24' };
    const german = { 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' };

    const theirs = await postForm((await givenSession({ fields })).id, answers, german);
    const own = await givenSession({ fields, settings: { locale: 'fr' } });
    const forms = await postForm(own.id, answers, german);

    expect(theirs.text).toMatch(/<html lang="de-AT"[\s\S]*Vielen Dank[\s\S]*Ja[\s\S]*24\. Dezember 2026/);
    expect(forms.text).toMatch(/<html lang="fr"[\s\S]*Merci[\s\S]*Oui[\s\S]*24 décembre 2026/);
  });

  it('sends the person on to the form’s own address', async () => {
    const session = await givenSession({ settings: { redirectUrl: 'https://shop.example/thanks' } });

    const reply = await postForm(session.id, { email: 'ada@example.com' });

    expect([reply.status, reply.headers.get('location')]).toEqual([303, 'https://shop.example/thanks']);
  });

  it('empties what prefill and defaults hold where the person took it away', async () => {
    const session = await givenSession({
      fields: [
        { id: 'news', type: 'checkbox', defaultValue: true },
        { id: 'name', type: 'text' },
      ],
      session: { prefill: { name: 'Ada' } },
    });

    const ending = await postForm(session.id, { name: '', _shown: 'news name' });

    expect(ending.status).toBe(200);
    const { session: stored } = (await service.get(`/v1/sessions/${session.id}`)).json;
    const { submission } = (await service.get(`/v1/submissions/${stored.submission_id}`)).json;
    expect(submission.answers).not.toHaveProperty('name');
    expect(submission.answers.news).not.toBe(true);
  });

  it('asks step by step without script, and brings in what the answers call for', async () => {
    const session = await givenSession({
      fields: [
        { id: 'laptop', type: 'boolean', required: true },
        { id: 'os', type: 'text', required: true, visibleWhen: { field: 'laptop', op: 'eq', value: true } },
        { id: 'diet', type: 'text', page: 2, visibleWhen: { field: 'laptop', op: 'eq', value: false } },
        { id: 'consent', type: 'checkbox', required: true, page: 3 },
      ],
    });
    const first = { laptop: 'true', _page: '1', _shown: 'laptop' };

    const revealed = await postForm(session.id, first);
    const last = await postForm(session.id, { ...first, os: 'Linux', _shown: 'laptop os' });
    const back = await postForm(session.id, {
      ...first,
      os: 'Linux',
      _page: '3',
      _shown: 'consent',
      _go: 'back',
    });
    const done = await postForm(session.id, {
      ...first,
      os: 'Linux',
      consent: 'true',
      _page: '3',
      _shown: 'consent',
    });

    expect(revealed.status).toBe(200);
    expect(revealed.text).toContain('Your answers added more questions.');
    expect(revealed.text).not.toContain('class="error"');
    expect(last.text).toContain('Step 2 of 2');
    expect(last.text).toContain('<input type="hidden" name="os" value="Linux" data-carried="text">');
    expect(back.text).toMatch(/name="os"[^>]*value="Linux"/);
    expect(done.text).toContain('Thank you');
    expect(await answersOf(service, session)).toEqual({ laptop: true, os: 'Linux', consent: true });
  });

  it('goes on where it stood if the form keeps partial answers', async () => {
    const session = await givenSession({
      settings: { allowPartial: true },
      fields: [
        { id: 'name', type: 'text', required: true },
        { id: 'consent', type: 'checkbox', required: true, page: 2 },
      ],
    });

    const step = await postForm(session.id, { name: 'Ada', _shown: 'name' });
    const saved = await postForm(session.id, { name: 'Ada L', _go: 'save' }, { accept: 'application/json' });
    const reopened = await service.get(`/f/${session.id}`);
    const earlier = await service.get(`/f/${session.id}?step=1`);

    expect([step.status, step.headers.get('location')]).toEqual([303, '?step=2']);
    expect(saved.json).toEqual({ ok: true, saved: true, refused: [] });
    expect(reopened.text).toContain('Step 2 of 2');
    expect(earlier.text).toContain('value="Ada L"');
  });

  it('stores what a machine filled as spam and tells it nothing', async () => {
    const session = await givenSession({ settings: { spam: { honeypot: true } } });

    const ending = await postForm(session.id, { email: 'bot@example.com', _website: 'http://spam.example' });

    expect([ending.status, ending.text.includes('Thank you')]).toEqual([200, true]);
    const path = `/v1/forms/${session.form_id}/submissions`;
    expect((await service.get(path)).json.submissions).toEqual([]);
    expect((await service.get(`${path}?status=spam`)).json.submissions).toHaveLength(1);
  });

  it('takes what comes too quickly, or from no page, for spam, and answers it like a person', async () => {
    const settings = { spam: { minSeconds: 60 } };
    const outcomes: [string, number, boolean][] = [];
    const submit = async (how: string, token: (issued: string) => string, waited: number) => {
      const session = await givenSession({ settings });
      const page = await service.get(`/f/${session.id}`);
      const issued = /name="_issued" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
      ahead = waited;
      const ending = await postForm(session.id, { email: 'a@example.com', _issued: token(issued) });
      ahead = 0;
      expect([how, ending.status, ending.text.includes('Thank you')]).toEqual([how, 200, true]);
      const path = `/v1/forms/${session.form_id}/submissions`;
      const { submissions } = (await service.get(`${path}?status=spam`)).json;
      outcomes.push([how, submissions.length, (await statusOf(session.id)) === 'submitted']);
      return issued;
    };

    const earlier = await submit('at once', (issued) => issued, 0);
    await submit('without a token', () => '', 61_000);
    await submit('with a forged token', forged, 61_000);
    await submit('with the token of another session', () => earlier, 61_000);
    await submit('like a person', (issued) => issued, 61_000);

    expect(outcomes).toEqual([
      ['at once', 1, true],
      ['without a token', 1, true],
      ['with a forged token', 1, true],
      ['with the token of another session', 1, true],
      ['like a person', 0, true],
    ]);
  });

  it('takes files without script, and names those that the field does not take', async () => {
    const session = await givenSession({
      fields: [{ id: 'cv', type: 'file', required: true, maxBytes: 20, accept: ['text/plain'] }],
    });

    const large = await postFile(session.id, 'x'.repeat(50));
    const wrong = await postFile(session.id, '%PDF-1.7\n%%EOF');
    const taken = await postFile(session.id, 'a short file');

    expect(large.status).toBe(422);
    expect(large.text).toContain('Types: TXT · Size: at most 20 B');
    expect(large.text).toContain('Choose a file of at most 20 B.');
    expect(taken.status).toBe(200);
    expect(taken.text).toContain('cv.txt');
    expect([wrong.status, wrong.text.includes('cv.txt isn’t an accepted type.')]).toEqual([422, true]);
    expect(await answersOf(service, session)).toMatchObject({ cv: { filename: 'cv.txt', size: 12 } });
  });
});

describe('a session that can’t be filled, or not by everybody,', () => {
  it('is unknown: 404', async () => {
    const page = await service.get('/f/sess_00000000000000000000000000000000', {
      headers: { 'accept-language': 'de' },
    });

    expect(page.status).toBe(404);
    expect(page.text).toContain('Seite nicht gefunden');
  });

  it('is archived: 410, and its JSON error is the documented one', async () => {
    const session = await givenSession({});
    await service.post(`/v1/forms/${session.form_id}/archive`);

    const page = await service.get(`/f/${session.id}`);
    const json = await service.get(`/f/${session.id}`, { headers: { accept: 'application/json' } });

    expect([page.status, page.text.includes('This form is closed')]).toEqual([410, true]);
    expect(json.status).toBe(410);
    expect(json.json.error).toMatchObject({ code: 'validation_failed', details: [], reason: 'archived' });
  });

  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://shop.example' },
    { origin: 'https://shop.example', 'sec-fetch-site': 'same-origin' },
    { cookie: 'respondent=of-a-person-who-has-given-a-code' },
  ])('is posted to by another site, by %j: 401, and nothing is stored', async (headers) => {
    const session = await givenSession({ settings: { embedOrigins: ['https://shop.example'] } });

    const page = await postForm(session.id, { email: 'a@example.com' }, headers);

    expect([page.status, page.text.includes('other sites')]).toEqual([401, true]);
    expect(await statusOf(session.id)).toBe('open');
  });

  it.each(['same-origin', 'none'])('takes a post of a page that is %s', async (site) => {
    const session = await givenSession({});

    const page = await postForm(session.id, { email: 'a@example.com' }, { 'sec-fetch-site': site });

    expect(page.status).toBe(200);
  });

  it('is posted to with more text than there may be: 413', async () => {
    const session = await givenSession({});

    const page = await postForm(session.id, { email: 'x'.repeat(300_000) });

    expect([page.status, page.text.includes('Too large')]).toEqual([413, true]);
  });

  it('is posted to without end: 413, and the connection ends', async () => {
    const session = await givenSession({});
    const chunk = `${(64 * 1024).toString(16)}\r\n${'x'.repeat(64 * 1024)}\r\n`;

    const reply = await sendUnended(service.url, [
      `POST /f/${session.id} HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n`,
      'Transfer-Encoding: chunked\r\n\r\n',
      ...Array.from({ length: 400 }, () => chunk),
    ]);

    expect(reply).toMatch(/^HTTP\/1.1 413 /);
    expect(reply).toMatch(/Connection: close/i);
    expect(await statusOf(session.id)).toBe('open');
  });

  it.each([
    ['compressed', { 'content-encoding': 'br' }],
    ['as no form', { 'content-type': 'application/json' }],
  ])('is posted to %s: 415', async (_, headers) => {
    const session = await givenSession({});

    const page = await postForm(session.id, { email: 'a@example.com' }, headers);

    expect([page.status, page.text.includes('We couldn’t read this')]).toEqual([415, true]);
    expect(await statusOf(session.id)).toBe('open');
  });

  it('serves on when a post is cut off', async () => {
    const session = await givenSession({});

    await cutOff(
      service.url,
      `POST /f/${session.id} HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n` +
        'Content-Length: 1000\r\n\r\n--b\r\nContent-Disposition: form-data; name="email"\r\n\r\na@exam',
    );

    expect((await service.get(`/f/${session.id}`)).status).toBe(200);
    expect(await statusOf(session.id)).toBe('open');
  });

  it.each(['DELETE', 'PUT', 'PATCH'])('is asked for by %s: 404 with Allow', async (method) => {
    const reply = await service.call(method, '/f/sess_1', undefined, {
      headers: { accept: 'application/json' },
    });

    expect([reply.status, reply.headers.get('allow'), reply.json.error.reason]).toEqual([
      404,
      'GET, HEAD, POST',
      'method',
    ]);
  });
});

async function givenSession({ fields, settings, session = {} }: SessionOptions) {
  const form = await service.givenPublishedForm({
    ...(fields !== undefined && { fields }),
    ...(settings !== undefined && { settings }),
  });
  const made = await service.post(`/v1/forms/${form.id}/sessions`, session);
  expect(made.status).toBe(201);
  return made.json.session as { id: string; form_id: string };
}

function postForm(id: string, inputs: Record<string, string>, headers: Record<string, string> = {}) {
  return service.call('POST', `/f/${id}`, new URLSearchParams(inputs).toString(), {
    key: null,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });
}

function postFile(id: string, content: string) {
  const data = new FormData();
  data.set('_shown', 'cv');
  data.set('cv', new File([content], 'cv.txt', { type: 'text/plain' }));
  return service.call('POST', `/f/${id}`, data, { key: null });
}

async function statusOf(id: string): Promise<string> {
  return (await service.get(`/v1/sessions/${id}`)).json.session.status;
}

type SessionOptions = { fields?: object[]; settings?: object; session?: object };
