import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { answersOf, givenSession, startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { textsByCharset } from '../support/charsets.ts';
import { noBrowser } from '../support/chromium.ts';
import { fencedBlocks, readDocument } from '../support/documents.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describe.skipIf(noBrowser)('somebody else’s site', () => {
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });
  afterEach(() => browser.expectNoProblems());

  it('frames a form that names its origin, at the height of its content, and people fill it there', async () => {
    let sessionId = '';
    await using site = await startSite(
      () => `<!doctype html><title>Shop</title><body>
        <script src="${service.url}/embed.js" data-session="${sessionId}"></script>`,
    );
    const session = await givenSession(service, { fields, settings: { embedOrigins: [site.origin] } });
    sessionId = session.id;
    const page = await browser.open(site.origin);

    const frame = page.frameLocator('iframe');
    await frame.locator('[name=laptop][value=false]').check();
    await expect
      .poll(() => page.locator('iframe').evaluate((element) => element.style.height))
      .toMatch(/^\d+px$/);
    await expect.poll(async () => (await page.locator('iframe').boundingBox())?.height).toBeGreaterThan(350);
    await frame.locator('button[value=forward]').click();
    await frame.locator('[name=consent]').check();
    await frame.locator('button[value=forward]').click();
    await frame.locator('.copy').waitFor();

    expect(await answersOf(service, session)).toEqual({ laptop: false, consent: true });
  });

  it('frames no form that does not name its origin', async () => {
    let sessionId = '';
    await using site = await startSite(
      () => `<!doctype html><title>Thief</title><iframe src="${service.url}/f/${sessionId}"></iframe>`,
    );
    const session = await givenSession(service, { settings: { embedOrigins: ['https://shop.example'] } });
    sessionId = session.id;
    const page = await browser.open(site.origin);

    await until(async () => browser.problems.length > 0);

    expect(browser.problems.splice(0).join()).toMatch(/frame-ancestors/);
    expect(await page.frameLocator('iframe').locator('form').count()).toBe(0);
  });

  it('can’t submit a session in a person’s name', async () => {
    let sessionId = '';
    await using site = await startSite(
      () => `<!doctype html><title>Thief</title><form method="post" action="${service.url.replace('127.0.0.1', 'localhost')}/f/${sessionId}">
        <input name="email" value="eve@example.com"><button>Win</button></form>`,
    );
    const session = await givenSession(service, {});
    sessionId = session.id;
    const page = await browser.open(site.origin);

    await page.click('button');
    await page.locator('h1', { hasText: 'Not accepted' }).waitFor();

    expect((await service.get(`/v1/sessions/${session.id}`)).json.session.status).toBe('open');
  });

  it('posts its own form and gets thanks, or goes on to its own page', async () => {
    const form = await service.givenPublishedForm();
    await using site = await startSite(() => staticSite(service.url, form.id));
    const page = await browser.open(site.origin);

    await page.fill('form [name=email]', 'ada@example.com');
    await page.fill('form [name=message]', 'Hello');
    await page.click('form button');
    await page.waitForURL(`${site.origin}/thanks.html`);

    const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
    expect(submissions.map(({ answers }: { answers: object }) => answers)).toEqual([
      { email: 'ada@example.com', message: 'Hello' },
    ]);
  });

  it.each([
    ['with script', true],
    ['without script', false],
  ])('says on its own page that answers were refused, %s', async (_name, javaScriptEnabled) => {
    const form = await service.givenPublishedForm();
    await using site = await startSite(() => staticSite(service.url, form.id).replace(' required', ''));
    const page = await browser.open('/health', { javaScriptEnabled });
    await page.goto(`${site.origin}/contact.html`);
    const before = await page.isVisible('#wrong');

    await page.fill('form [name=message]', 'Hello');
    await page.click('form button');
    await page.waitForSelector('#wrong', { state: 'visible' });

    expect(before).toBe(false);
    expect(page.url()).toBe(`${site.origin}/contact.html?error=email%3Ainvalid_type#wrong`);
    expect((await service.get(`/v1/forms/${form.id}/submissions`)).json.submissions).toEqual([]);
  });

  it('says on its own page what was refused, by a script', async () => {
    const form = await service.givenPublishedForm();
    await using site = await startSite(() => {
      const own = staticSite(service.url, form.id).replace(' required', '');
      const back = own.replace('/contact.html#wrong', '/again.html?lang=en');
      return `${back}${documentedSite('getAll(', service.url, form.id)}`;
    });
    const page = await browser.open(site.origin);

    await page.fill('form [name=message]', 'Hello');
    await page.click('form button');
    await page.locator('#errors', { hasText: 'Enter your email address.' }).waitFor();

    expect(page.url()).toBe(`${site.origin}/again.html?lang=en&error=email%3Ainvalid_type`);
    expect((await service.get(`/v1/forms/${form.id}/submissions`)).json.submissions).toEqual([]);
  });

  it.each(textsByCharset)('posts what people type on a page in %s', async (charset, text) => {
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'message', type: 'text' },
        { id: 'cv', type: 'file' },
      ],
    });
    const filename = `${text.replaceAll(/[^\p{L}\p{M}]/gu, '')}.txt`;
    const post = (more: string) =>
      `<form method="post" ${more} action="${service.url}/api/forms/${form.id}/submissions"><input name="_charset_" type="hidden">`;
    await using site = await startSite(
      () => `<!doctype html><html lang="en"><title>Site</title>
        ${post('')}<input id="plain" name="message"><button id="send-plain">Send</button></form>
        ${post('enctype="multipart/form-data"')}<input id="parts" name="message"><input type="file" name="cv"><button id="send-parts">Send</button></form>`,
      charset,
    );
    const page = await browser.open(site.origin);

    await page.fill('#plain', text);
    await page.click('#send-plain');
    await page.waitForSelector('h1.done');
    await page.goto(site.origin);
    await page.fill('#parts', text);
    await page.setInputFiles('[name=cv]', {
      name: filename,
      mimeType: 'text/plain',
      buffer: Buffer.from('my life'),
    });
    await page.click('#send-parts');
    await page.waitForSelector('h1.done');

    const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
    expect(submissions.map(({ answers }: { answers: object }) => answers)).toMatchObject([
      { message: text, cv: { filename: filename.normalize('NFC') } },
      { message: text },
    ]);
  });

  it('leads on to a page of http on loopback by the form’s own page, with script and without', async () => {
    await using site = await startSite(() => '<!doctype html><title>Thanks</title>');
    const form = await service.givenPublishedForm({
      fields: [{ id: 'email', type: 'email', required: true }],
      settings: { redirectUrl: `${site.origin}/thanks.html` },
    });
    for (const javaScriptEnabled of [true, false]) {
      const page = await browser.open(`${service.url}/f/${form.id}`, { javaScriptEnabled });

      await page.fill('[name=email]', 'ada@example.com');
      await page.click('button[value=forward]');
      await page.waitForURL(`${site.origin}/thanks.html`);
    }
  });

  it('posts by fetch, reads what was refused and what was stored', async () => {
    const form = await service.givenPublishedForm();
    await using site = await startSite(() => fetchingSite(service.url, form.id));
    const page = await browser.open(site.origin);

    await page.fill('[name=email]', 'nobody');
    await page.click('button');
    await page.locator('output', { hasText: 'answers.email' }).waitFor();
    await page.fill('[name=email]', 'ada@example.com');
    await page.click('button');
    await page.locator('output', { hasText: 'Thank you' }).waitFor();

    expect((await service.get(`/v1/forms/${form.id}/submissions`)).json.submissions).toHaveLength(1);
  });

  it('posts numbers, boxes, lists and files by fetch', async () => {
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'email', type: 'email' },
        { id: 'age', type: 'number' },
        { id: 'terms', type: 'checkbox' },
        {
          id: 'pets',
          type: 'multi_select',
          options: ['cat', 'dog'].map((value) => ({ label: value, value })),
        },
        { id: 'cv', type: 'file' },
      ],
    });
    const more = `<input name="age" type="number" step="any"><input name="terms" type="checkbox">
      <input name="pets" type="checkbox" value="cat"><input name="pets" type="checkbox" value="dog">
      <input name="cv" type="file"><button>`;
    await using site = await startSite(() => fetchingSite(service.url, form.id).replace('<button>', more));
    const page = await browser.open(site.origin);

    await page.fill('[name=age]', '4.5');
    for (const box of await page.locator('[type=checkbox]').all()) await box.check();
    await page.setInputFiles('[name=cv]', {
      name: 'cv.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('my life'),
    });
    await page.click('button');
    await page.locator('output', { hasText: 'Thank you' }).waitFor();

    const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
    expect(submissions[0].answers).toMatchObject({
      age: 4.5,
      terms: true,
      pets: ['cat', 'dog'],
      cv: { filename: 'cv.txt' },
    });
  });

  it('is turned away where the form names other origins', async () => {
    const form = await service.givenPublishedForm({ settings: { allowedOrigins: ['https://shop.example'] } });
    await using site = await startSite(() => fetchingSite(service.url, form.id));
    const page = await browser.open(site.origin);

    await page.fill('[name=email]', 'eve@example.com');
    await page.click('button');
    await page.locator('output', { hasText: /\S/ }).waitFor();

    expect(await page.textContent('output')).not.toContain('Thank you');
    expect((await service.get(`/v1/forms/${form.id}/submissions`)).json.submissions).toEqual([]);
    browser.problems.splice(0);
  });
});

/** The page of docs/own-html.md for static sites. */
function staticSite(url: string, formId: string): string {
  return documentedSite('action=', url, formId);
}

/** The page of docs/own-html.md that posts by fetch. */
function fetchingSite(url: string, formId: string): string {
  return documentedSite('fetch(', url, formId);
}

/** The page in docs/own-html.md with some text, for a form of a service. */
function documentedSite(part: string, url: string, formId: string): string {
  const pages = fencedBlocks(readDocument('docs/own-html.md')).filter(({ language }) => language === 'html');
  const page = pages.find(({ text }) => text.includes(part))?.text ?? '';
  const own = page.replace('http://localhost:8080', url).replace('form_…', formId);
  return `<!doctype html><title>Contact</title>${own}`;
}

const fields = [
  { id: 'laptop', type: 'boolean', required: true },
  { id: 'os', type: 'text', required: true, visibleWhen: { field: 'laptop', op: 'eq', value: true } },
  { id: 'consent', type: 'checkbox', required: true, page: 2 },
];
