import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: { id: string };

beforeAll(async () => {
  service = await startService();
  form = await service.givenPublishedForm({
    fields: [
      { id: 'amount', type: 'number', max: 2_000 },
      { id: 'stars', type: 'rating' },
      { id: 'half', type: 'number', step: 0.5 },
      { id: 'born', type: 'date' },
      { id: 'founded', type: 'date', min: '0800-01-01' },
      { id: 'at', type: 'datetime' },
      { id: 'phone', type: 'phone' },
      { id: 'email', type: 'email' },
      { id: 'site', type: 'url' },
      { id: 'note', type: 'text' },
      { id: 'why', type: 'text', required: true, visibleWhen: { field: 'amount', op: 'eq', value: 1500 } },
    ],
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const submissions = () => `/api/forms/${form.id}/submissions`;
const post = (inputs: Record<string, string>, accept = 'application/json') =>
  service.post(submissions(), new URLSearchParams(inputs), { key: null, headers: { accept } });
const storedOf = async ({ json }: { json: { submission_id: string } }) =>
  (await service.get(`/v1/submissions/${json.submission_id}`)).json.submission.answers;

describe('numbers of a site’s own form', () => {
  it.each([
    ['de', '1.500', 1500],
    ['de', '3,5', 3.5],
    ['de-CH', '1’500.5', 1500.5],
    ['fr', '1\u202f500,25', 1500.25],
    ['en-IN', '1,500', 1500],
    ['ar', '١٬٥٠٠', 1500],
    ['ja', '１５００', 1500],
    ['', '1.500', 1.5],
  ])('are read in the language that it names: %s, %s', async (_lang, amount, read) => {
    const inputs = { amount, stars: '4', half: new Intl.NumberFormat(_lang || 'en').format(2.5), why: 'w' };
    const sent = await post(_lang === '' ? { ...inputs, half: '2.5' } : { ...inputs, _lang });

    expect(sent.status).toBe(201);
    const { why, ...answers } = await storedOf(sent);
    expect(answers).toEqual({ amount: read, stars: 4, half: 2.5 });
    expect(why).toBe(read === 1500 ? 'w' : undefined);
  });

  it('are refused with what they may mean', async () => {
    const refused = await post({ amount: '1.5', _lang: 'de' });
    const page = await post({ amount: '1.5', _lang: 'de', stars: '3', half: '2,5' }, 'text/html');

    expect(refused.json.error.details).toEqual([
      expect.objectContaining({
        path: 'answers.amount',
        code: 'invalid_type',
        message: 'Expected number, received string that can mean 1.5 or 15',
      }),
    ]);
    expect(page.status).toBe(422);
    expect(page.text).toContain('Enter a number. Did you mean 1.5 or 15?');
    // The page is in English and says so: what was read is written in its form.
    expect(page.text).toMatch(/name="half"[^>]*value="2\.5"/);
    expect(page.text).toContain('<input type="hidden" name="_lang" value="en">');
  });

  it.each(['german', 'x', 'de_DE', '..', 'd'.repeat(100)])(
    'in no language are refused: %s',
    async (_lang) => {
      const refused = await post({ amount: '3', _lang });

      expect(refused.status).toBe(422);
      expect(refused.json.error.details).toMatchObject([{ path: '_lang', code: 'invalid_string' }]);
    },
  );

  it('stay plain in JSON, links and filters', async () => {
    const refused = await service.post(submissions(), { answers: { amount: '1.500' } });
    const page = await service.get(`/f/${form.id}?amount=1.500&_lang=de`, {
      key: null,
      headers: { 'accept-language': 'de' },
    });
    await post({ amount: '1.5', note: 'found' });
    const found = await service.get(`/v1/forms/${form.id}/submissions?filter[amount]=1.500`);

    expect(refused.status).toBe(422);
    expect(page.text).toMatch(/name="amount"[^>]*value="1,5"/);
    expect(found.json.submissions.length).toBeGreaterThan(0);
  });
});

describe('years of a site’s own form', () => {
  it.each([
    ['born', '0024-05-01'],
    ['born', '0202-05-01'],
    ['born', '0000-05-01'],
    ['at', '0024-05-01T10:00'],
  ])('before 1000 are refused: %s %s', async (id, value) => {
    const refused = await post({ [id]: value });

    expect(refused.json.error.details).toMatchObject([{ path: `answers.${id}`, code: 'invalid_date' }]);
  });

  it('are asked for where they may be meant, and taken where the field has such', async () => {
    const page = await post({ born: '0024-05-01', at: '0097-05-01T10:00' }, 'text/html');
    const early = await post({ founded: '0812-05-01' });
    const json = await service.post(submissions(), { answers: { born: '0024-05-01' } });

    expect(page.text).toContain('Did you mean 2024?');
    expect(page.text).toContain('Did you mean 1997?');
    expect(page.text).toMatch(/name="born"[^>]*value="0024-05-01"/);
    expect(page.text).toMatch(/name="at"[^>]*value="0097-05-01T10:00"/);
    expect(await storedOf(early)).toEqual({ founded: '0812-05-01' });
    expect(await storedOf(json)).toEqual({ born: '0024-05-01' });
  });
});

describe('what is pasted', () => {
  const pasted = {
    phone: '\u202a ＋49\u00a030 12345\u201167 ext. 8\u202c',
    email: ' ada@münchen.de\u00a0',
    site: ' https://bücher.example/ü ',
    note: '\u200b\u3164',
  };
  const stored = {
    phone: '+49 30 12345-67;ext=8',
    email: 'ada@xn--mnchen-3ya.de',
    site: 'https://xn--bcher-kva.example/ü',
  };

  it('is stored alike by JSON, by a site’s form and by the page', async () => {
    const json = await service.post(submissions(), { answers: pasted });
    const html = await post(pasted);
    const hosted = await service.post(
      `/f/${form.id}`,
      new URLSearchParams({
        ...pasted,
        _shown: 'amount stars half born founded at phone email site note',
        _go: 'forward',
        _page: '1',
      }),
      { key: null, headers: { accept: 'application/json', origin: service.url } },
    );

    expect([json, html, hosted].map(({ status }) => status)).toEqual([201, 201, 201]);
    for (const sent of [json, html, hosted]) expect(await storedOf(sent)).toEqual(stored);
  });

  it('is found by a filter, and shown in its own script', async () => {
    await post(pasted);

    const query = new URLSearchParams({ 'filter[phone]': pasted.phone, 'filter[email]': pasted.email });
    const found = await service.get(`/v1/forms/${form.id}/submissions?${query.toString()}`);
    const thanks = await post(pasted, 'text/html');

    expect(found.json.submissions[0]?.answers).toEqual(stored);
    expect(thanks.text).toContain('ada@münchen.de');
    expect(thanks.text).toContain('https://bücher.example/ü');
  });

  it('is the address of owners, recipients and people who are asked', async () => {
    const typed = ' olga@bücher.example ';
    const address = 'olga@xn--bcher-kva.example';
    const changed = await service.post(`/v1/forms/${form.id}/owner`, { email: typed });
    const session = await service.post(`/v1/forms/${form.id}/sessions`, {
      notify: { email: typed },
      respondent: { email: typed },
    });
    const delivering = await service.givenPublishedForm({ delivery: { type: 'email', to: [typed] } });
    const read = await service.get(`/v1/forms/${delivering.id}/versions/1`);

    expect([changed.status, changed.text]).toEqual([
      expect.any(Number),
      expect.not.stringContaining('invalid'),
    ]);
    expect(session.status).toBe(201);
    expect(JSON.stringify(session.json)).not.toContain('bücher');
    expect(JSON.stringify(read.json)).toContain(address);
  });
});

describe('a text in another normal form of Unicode', () => {
  const [composed, decomposed] = ['Café', 'Café'.normalize('NFD')] as [string, string];

  it.each([
    [composed, decomposed],
    [decomposed, composed],
  ])('is found by a list’s filters: %j by %j', async (note, wanted) => {
    const { json } = await service.post(submissions(), { answers: { note } });

    for (const op of ['eq', 'in', 'contains']) {
      const query = new URLSearchParams({ [`filter[note][${op}]`]: wanted });
      const found = await service.get(`/v1/forms/${form.id}/submissions?${query.toString()}`);

      expect(found.json.submissions.map(({ id }: { id: string }) => id)).toContain(json.submission_id);
    }
  });
});
