import { type BrowserContextOptions, devices, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

const withAndWithoutScript = [
  ['with script', { javaScriptEnabled: true }],
  ['without script', { javaScriptEnabled: false }],
] as const;

describe.skipIf(noBrowser)('a form’s own page', () => {
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

  it.each(withAndWithoutScript)(
    'takes answers without a session, one submission of a double click, and is new for the next, %s',
    async (_name, options) => {
      const form = await service.givenPublishedForm({
        fields: [
          { id: 'email', type: 'email', required: true },
          { id: 'utm_source', type: 'hidden' },
        ],
      });
      const page = await open(`/f/${form.id}?utm_source=mail&email=ada@example.com`, options);

      expect(await page.inputValue('[name=email]')).toBe('ada@example.com');
      await page.fill('[name=email]', 'no address');
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');
      await page.fill('[name=email]', 'grace@example.com');
      await page.dblclick('button[value=forward]');
      await page.waitForSelector('.copy');
      await page.reload();
      // A browser without script posts the page once more; the script has fetched the thanks.
      if (!options.javaScriptEnabled) await page.waitForSelector('.copy');
      await page.goto(`${service.url}/f/${form.id}`);

      expect(await page.inputValue('[name=email]')).toBe('');
      expect(await submissionsOf(form)).toEqual([
        { answers: { email: 'grace@example.com', utm_source: 'mail' }, session_id: null },
      ]);
      expect(await sessionsOf(form)).toEqual([]);
    },
  );

  it('goes through steps and conditions without script where nothing is saved', async () => {
    const form = await service.givenPublishedForm({ fields: steps });
    const page = await open(`/f/${form.id}?source=qr`, { javaScriptEnabled: false });

    await answerSteps(page);

    const answers = { laptop: true, os: 'Linux', consent: true, source: 'qr' };
    expect(await submissionsOf(form)).toMatchObject([{ answers, session_id: null }]);
    expect(await sessionsOf(form)).toEqual([]);
  });

  it.each(withAndWithoutScript)(
    'begins a session with the first answer, finds it again, and forgets it at the end, %s',
    async (_name, options) => {
      const form = await service.givenPublishedForm({ fields: steps, settings: { allowPartial: true } });
      const address = `/f/${form.id}?source=qr`;
      const page = await open(address, options);
      const looked = await sessionsOf(form);

      await page.check('[name=laptop][value=true]');
      if (options.javaScriptEnabled) await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
      else await page.click('button[value=forward]');
      await page.goto(`${service.url}${address}`);
      expect(await page.isChecked('[name=laptop][value=true]')).toBe(true);
      const begun = await sessionsOf(form);
      await answerSteps(page);
      await page.goto(`${service.url}${address}`);

      expect(looked).toEqual([]);
      expect(begun).toMatchObject([{ status: 'open', partial_answers: { laptop: true } }]);
      expect(await page.isChecked('[name=laptop][value=true]')).toBe(false);
      expect(await submissionsOf(form)).toEqual([
        {
          answers: { laptop: true, os: 'Linux', consent: true, source: 'qr' },
          session_id: begun[0]?.id,
        },
      ]);
    },
  );

  it.each(withAndWithoutScript)(
    'tells the next person whose answers it has, and starts over, %s',
    async (_name, options) => {
      const form = await service.givenPublishedForm({ fields: steps, settings: { allowPartial: true } });
      const address = `${service.url}/f/${form.id}?source=qr`;
      const page = await open(address, options);
      const first = await page.locator('.kept').count();
      await page.check('[name=laptop][value=false]');
      await page.click('button[value=forward]');
      await page.waitForSelector('[type=checkbox][name=consent]');
      await page.click('button[value=back]');
      await page.waitForSelector('[name=laptop]');
      const onTheWay = await page.locator('.kept').count();
      const [cookie] = await page.context().cookies();

      await page.goto(address);
      const kept = await page.textContent('.kept');
      const problems = options.javaScriptEnabled ? await browser.audit(page) : [];
      await page.click('text=Start over');
      await page.locator('.kept').waitFor({ state: 'detached' });

      expect([first, onTheWay]).toEqual([0, 0]);
      expect(kept).toMatch(/We kept your answers from [A-Z][a-z]{2} \d+, \d+:\d\d/);
      expect(problems).toEqual([]);
      expect(cookie).toMatchObject({ name: 'form_visit', expires: -1 });
      expect(page.url()).toBe(address);
      expect(await page.isChecked('[name=laptop][value=false]')).toBe(false);
      expect(await page.context().cookies()).toEqual([]);
      expect(await sessionsOf(form)).toEqual([]);
    },
  );

  it.each(withAndWithoutScript)(
    'remembers whoever asks for it for seven days, %s',
    async (_name, options) => {
      const form = await service.givenPublishedForm({ fields: steps, settings: { allowPartial: true } });
      const page = await open(`/f/${form.id}`, options);
      const answerAndSave = async () => {
        await page.check('[name=laptop][value=false]');
        if (options.javaScriptEnabled) await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
        else await page.click('button[value=forward]');
      };
      const daysOf = async () => {
        const [cookie] = await page.context().cookies();
        return cookie === undefined || cookie.expires === -1
          ? 0
          : (cookie.expires * 1000 - Date.now()) / 86_400_000;
      };

      await page.check('[name=_remember]');
      await answerAndSave();
      const remembered = await daysOf();
      await page.goto(`${service.url}/f/${form.id}?step=1`);
      const isTicked = await page.isChecked('[name=_remember]');
      await page.uncheck('[name=_remember]');
      if (!options.javaScriptEnabled) await page.click('button[value=forward]');

      expect(remembered).toBeCloseTo(7, 1);
      expect(isTicked).toBe(true);
      await expect.poll(daysOf).toBe(0);
      expect(await sessionsOf(form)).toHaveLength(1);
    },
  );

  it('keeps two pages of one browser apart', async () => {
    const form = await service.givenPublishedForm({
      fields: [{ id: 'name', type: 'text' }],
      settings: { allowPartial: true },
    });
    const one = await open(`/f/${form.id}`);
    const two = await one.context().newPage();
    await two.goto(one.url());

    for (const [page, name] of [
      [one, 'Ada'],
      [two, 'Grace'],
    ] as const) {
      await page.fill('[name=name]', name);
      await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
    }
    for (const page of [one, two]) {
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');
    }

    const names = (await submissionsOf(form)).map(({ answers }) => answers.name);
    expect(new Set(names)).toEqual(new Set(['Ada', 'Grace']));
  });

  it.each(withAndWithoutScript)('takes files, %s', async (_name, options) => {
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'email', type: 'email', required: true },
        { id: 'cv', type: 'file', required: true, maxFiles: 2 },
      ],
    });
    const page = await open(`/f/${form.id}`, options);
    const file = { name: 'cv.txt', mimeType: 'text/plain', buffer: Buffer.from('text') };

    await page.setInputFiles('[type=file]', file);
    if (options.javaScriptEnabled) await page.locator('.files button').waitFor();
    await page.click('button[value=forward]');
    await page.waitForSelector('.summary');
    await page.fill('[name=email]', 'a@example.com');
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');

    const [session] = await sessionsOf(form);
    expect(await submissionsOf(form)).toMatchObject([
      { answers: { cv: [{ filename: 'cv.txt' }] }, session_id: session?.id },
    ]);
  });

  it('answers who has begun too many sessions all the same', async () => {
    await using limited = await startService({ env: { RATE_LIMIT: 'on' } });
    const form = await limited.givenPublishedForm({ fields: steps, settings: { allowPartial: true } });
    await limited.database.execute(
      `insert into rate_limits (key, hits, resets_at)
       values ('visit:${form.id}:127.0.0.1', 100, now() + interval '1 hour')`,
    );
    await using other = await startBrowser(limited);
    const page = await other.open(`/f/${form.id}`, { javaScriptEnabled: false });

    await answerSteps(page);

    const { submissions } = (await limited.get(`/v1/forms/${form.id}/submissions`)).json;
    expect(submissions).toMatchObject([{ answers: { os: 'Linux' }, session_id: null }]);
    await other.expectNoProblems();
  });

  it('has no accessibility problem, nor have its refusals', async () => {
    const options = { ...devices['iPhone SE'], viewport: { width: 360, height: 640 } };
    const form = await service.givenPublishedForm({ fields: steps });
    const hidden = await service.givenPublishedForm({ settings: { publicPage: false } });
    const invited = await service.givenPublishedForm({
      fields: [
        { id: 'note', type: 'text', defaultValue: 'Hello' },
        { id: 'token', type: 'hidden', required: true },
      ],
    });
    const page = await open(`/f/${form.id}`, { ...options, colorScheme: 'dark' });
    const problems = [await browser.audit(page)];

    await answerSteps(page);
    problems.push(await browser.audit(page));
    const refused = await page.goto(`${service.url}/f/${hidden.id}`);
    problems.push(await browser.audit(page));
    const incomplete = await page.goto(`${service.url}/f/${invited.id}`);
    problems.push(await browser.audit(page));

    expect(problems).toEqual([[], [], [], []]);
    expect(refused?.status()).toBe(404);
    expect(incomplete?.status()).toBe(400);
    expect(await page.textContent('h1')).toBe('This link is not complete');
    await page.goto(`${service.url}/f/${invited.id}?token=t1`);
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');
    expect(await submissionsOf(invited)).toMatchObject([{ answers: { token: 't1' } }]);
  });

  it('can be embedded by its id, at its height, with answers from the page around it', async () => {
    let formId = '';
    await using site = await startSite(
      () => `<!doctype html><title>Shop</title><body>
        <script src="${service.url}/embed.js" data-form="${formId}" data-query="source=shop"></script>`,
    );
    const settings = { embedOrigins: [site.origin], allowPartial: true };
    const form = await service.givenPublishedForm({ fields: steps, settings });
    formId = form.id;
    const page = await browser.open(site.origin);

    const frame = page.frameLocator('iframe');
    await frame.locator('[name=laptop][value=false]').check();
    await frame.locator('#status', { hasText: /^Saved$/ }).waitFor();
    await expect.poll(async () => (await page.locator('iframe').boundingBox())?.height).toBeGreaterThan(250);
    await frame.locator('button[value=forward]').click();
    await frame.locator('[name=consent]').check();
    await frame.locator('button[value=forward]').click();
    await frame.locator('.copy').waitFor();

    expect(await submissionsOf(form)).toMatchObject([{ answers: { laptop: false, source: 'shop' } }]);
  });

  it('opens in a dialog of another page, which a key closes and a button opens again as it was', async () => {
    let formId = '';
    await using site = await startSite(
      () => `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1>
        <script src="${service.url}/embed.js" data-form="${formId}" data-popup="Write to us" data-title="Contact"></script></main>`,
    );
    const form = await service.givenPublishedForm({ settings: { embedOrigins: [site.origin] } });
    formId = form.id;
    const page = await browser.open(site.origin, { viewport: { width: 360, height: 640 } });
    const frame = page.frameLocator('iframe');

    expect(await page.locator('iframe').count()).toBe(0);
    await page.click('text=Write to us');
    await frame.locator('[name=email]').fill('ada@example.com');
    const problems = await browser.audit(page);
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'hidden' });
    await page.click('text=Write to us');
    expect(await frame.locator('[name=email]').inputValue()).toBe('ada@example.com');
    await frame.locator('button[value=forward]').click();
    await frame.locator('.copy').waitFor();
    await page.click('dialog >> button');

    expect(problems).toEqual([]);
    expect(await page.locator('dialog').isVisible()).toBe(false);
    expect(await submissionsOf(form)).toHaveLength(1);
  });

  function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    return browser.open(path, options);
  }

  async function submissionsOf({ id }: { id: string }): Promise<{ answers: Record<string, unknown> }[]> {
    const { submissions } = (await service.get(`/v1/forms/${id}/submissions`)).json;
    return submissions.map(({ answers, session_id }: Record<string, unknown>) => ({ answers, session_id }));
  }

  async function sessionsOf({ id }: { id: string }): Promise<{ id: string }[]> {
    return (await service.get(`/v1/forms/${id}/sessions`)).json.sessions;
  }
});

async function answerSteps(page: Page): Promise<void> {
  await page.check('[name=laptop][value=true]');
  await page.click('button[value=forward]');
  // The question is asked anew, or for the first time: what is typed before that reply is replaced by it.
  await page.waitForSelector('.summary[autofocus], .notice[autofocus]');
  await page.fill('[name=os]', 'Linux');
  await page.click('button[value=forward]');
  await page.check('[type=checkbox][name=consent]');
  await page.click('button[value=back]');
  await page.waitForSelector('[name=os]');
  await page.click('button[value=forward]');
  await page.check('[type=checkbox][name=consent]');
  await page.click('button[value=forward]');
  await page.waitForSelector('.copy');
}

const steps = [
  { id: 'source', type: 'hidden' },
  { id: 'laptop', type: 'boolean', required: true },
  { id: 'os', type: 'text', required: true, visibleWhen: { field: 'laptop', op: 'eq', value: true } },
  { id: 'consent', type: 'checkbox', required: true, page: 2 },
];
