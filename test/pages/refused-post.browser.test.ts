import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

const fields = [
  { id: 'email', type: 'email', label: 'E-Mail', required: true },
  {
    id: 'kind',
    type: 'radio',
    required: true,
    options: [
      { label: 'Eins', value: '1' },
      { label: 'Zwei', value: '2' },
    ],
  },
  {
    id: 'why',
    type: 'text',
    label: 'Warum',
    required: true,
    visibleWhen: { field: 'kind', op: 'eq', value: '2' },
    page: 2,
  },
  { id: 'terms', type: 'checkbox', label: 'Einverstanden' },
  { id: 'cv', type: 'file', accept: ['text/plain'], label: 'Lebenslauf' },
  { id: 'utm', type: 'hidden' },
];
const settings = { locale: 'de', theme: { accentColor: '#aa0044' } };

describe('a refused post of a site’s own form', () => {
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    service = await startService();
    if (!noBrowser) browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  const post = (id: string, body: URLSearchParams | FormData, headers: Record<string, string> = {}) =>
    service.call('POST', `/api/forms/${id}/submissions`, body, {
      key: null,
      headers: { accept: 'text/html', ...headers },
    });

  it('shows the form in its language and colours, with values and errors, and nothing as markup', async () => {
    const form = await service.givenPublishedForm({ fields, settings });
    const body = new URLSearchParams({
      email: '"><script>alert(1)</script>',
      kind: '1',
      terms: 'on',
      utm: '<b>',
      _next: 'https://site.example/thanks',
      other: "'",
    });

    const reply = await post(form.id, body, {
      origin: 'https://site.example',
      referer: 'https://site.example/contact?a="b"',
      'accept-language': 'fr',
    });

    expect([reply.status, reply.headers.get('referrer-policy')]).toEqual([422, 'same-origin']);
    expect(reply.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'self' 'sha256-/,
    );
    expect(reply.text).toContain('lang="de"');
    expect(reply.text).toContain('E-Mail – Geben Sie eine E-Mail-Adresse ein');
    expect(reply.text).toContain('value="&quot;&gt;&lt;script&gt;');
    expect(reply.text).toMatch(/value="1" checked/);
    expect(reply.text).toMatch(/<input id="terms.0"[^>]* checked/);
    expect(reply.text).toContain('<input type="hidden" name="utm" value="&lt;b&gt;">');
    expect(reply.text).toContain('<input type="hidden" name="_next" value="https://site.example/thanks">');
    expect(reply.text).toContain(
      '<a href="https://site.example/contact?a=%22b%22">Zurück zu site.example</a>',
    );
    expect(reply.text).not.toMatch(/<script>|<b>/);
  });

  it.each([
    [
      'another origin than it says',
      { origin: 'https://a.example', referer: 'https://b.example/x' },
      'https://a.example/',
    ],
    ['no origin', { referer: 'http://b.example/x' }, 'http://b.example/x'],
    ['none at all', {}, undefined],
    ['a sandbox', { origin: 'null' }, undefined],
    ['no address of the web', { referer: 'javascript:alert(1)' }, undefined],
    ['an address with a password', { referer: 'https://a:b@c.example/' }, undefined],
  ])('leads back to the page before, from %s', async (_name, headers, there) => {
    const form = await service.givenPublishedForm({ fields, settings });

    const { text } = await post(form.id, new URLSearchParams({ _site: 'https://evil.example/' }), headers);

    expect(/<a href="([^"#]*)">Zurück/.exec(text)?.[1]).toBe(there);
    expect(text).not.toContain('evil.example');
  });

  it('stays a plain page where the form has none of its own, is closed, or nothing is known of it', async () => {
    const hidden = await service.givenPublishedForm({ fields, settings: { publicPage: false } });
    const closed = await service.givenPublishedForm({ fields });
    await service.post(`/v1/forms/${closed.id}/archive`);

    const replies = await Promise.all(
      [hidden.id, closed.id, 'form_none'].map((id) => post(id, new URLSearchParams({ email: 'x' }))),
    );

    expect(replies.map(({ status }) => status)).toEqual([422, 410, 404]);
    for (const { text } of replies) expect(text).not.toContain('<form');
  });

  it('is JSON with what is wrong with each file, and nothing else, where JSON is preferred', async () => {
    const form = await service.givenPublishedForm({ fields });
    const body = new FormData();
    body.set('cv', new File(['%PDF-1.7'], 'cv.txt'));
    body.set('email', 'x');

    const { status, json } = await post(form.id, body, { accept: 'application/json' });

    expect([status, json.error.details.map(({ path }: { path: string }) => path)]).toEqual([
      422,
      ['answers.cv'],
    ]);
  });

  describe.skipIf(noBrowser)('in a browser', () => {
    afterEach(() => browser.expectNoProblems());

    it.each([
      ['with script', true],
      ['without script', false],
    ])('is corrected and sent, and leads on where the site wanted, %s', async (_name, javaScriptEnabled) => {
      const form = await service.givenPublishedForm({ fields, settings });
      await using site = await startSite(
        (origin) => `<!doctype html><html lang="de"><title>Site</title><h1>Site</h1>
          <form method="post" enctype="multipart/form-data" action="${service.url}/api/forms/${form.id}/submissions">
          <input name="email"><input name="kind" value="2"><input type="file" name="cv">
          <input type="hidden" name="utm" value="ad"><input type="hidden" name="_next" value="${origin}/thanks">
          <button>Send</button></form>`,
      );
      const file = (name: string, text: string) => ({
        name,
        mimeType: 'text/plain',
        buffer: Buffer.from(text),
      });
      const page = await browser.open('/health', { javaScriptEnabled });
      await page.goto(`${site.origin}/contact`);
      await page.fill('[name=email]', 'ada');
      await page.setInputFiles('[name=cv]', file('cv.txt', 'my life'));
      await page.click('button');

      await page.waitForSelector('.summary');
      expect(await page.locator('.summary a').allTextContents()).toEqual([
        'E-Mail – Geben Sie eine E-Mail-Adresse ein, etwa name@example.com.',
        'Füllen Sie „Warum“ aus.',
        'Lebenslauf – Wählen Sie die Datei noch einmal: Sie konnte nicht behalten werden.',
      ]);
      expect(await page.getAttribute('text=Zurück zu', 'href')).toMatch(site.origin);
      expect(await page.inputValue('[name=email]')).toBe('ada');
      if (javaScriptEnabled) expect(await browser.audit(page)).toEqual([]);

      await page.fill('[name=email]', 'ada@example.com');
      await page.setInputFiles('[name=cv]', file('cv.pdf', '%PDF-1.7'));
      if (javaScriptEnabled) await page.waitForSelector('.files .error');
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');
      await page.fill('[name=why]', 'so');
      await page.setInputFiles('[name=cv]', file('cv.txt', 'my life'));
      if (javaScriptEnabled) await page.waitForSelector('.files button');
      await page.click('button[value=forward]');
      await page.waitForURL(`${site.origin}/thanks`);

      const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
      expect(submissions[0].answers).toMatchObject({
        email: 'ada@example.com',
        kind: '2',
        why: 'so',
        utm: 'ad',
        cv: { filename: 'cv.txt', size: 7 },
      });
    });
  });
});
