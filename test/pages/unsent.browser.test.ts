import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

const fields = [
  { id: 'plan', type: 'hidden', defaultValue: 'the-hidden-plan' },
  { id: 'email', type: 'email', label: 'Email address', required: true },
  { id: 'note', type: 'textarea', label: 'Your note' },
  {
    id: 'team',
    type: 'radio',
    label: 'Team',
    options: [
      { label: 'Sound', value: 'sound' },
      { label: 'Textile', value: 'textile' },
    ],
  },
];
const cv = { id: 'cv', type: 'file', label: 'CV' };
const file = { name: 'cv.txt', mimeType: 'text/plain', buffer: Buffer.from('All my work') };

describe.skipIf(noBrowser)('a page that can’t be sent', () => {
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
  afterEach(async () => {
    // What Chromium says of a call without a connection, or with one that breaks off.
    const others = browser.problems.filter(
      (problem) => !/ERR_(INTERNET_DISCONNECTED|CONNECTION)/.test(problem),
    );
    browser.problems.splice(0, browser.problems.length, ...others);
    await browser.expectNoProblems();
  });

  it('sends texts of three bytes a character as long as its fields take', async () => {
    const texts = ['one', 'two', 'three'].map((id) => ({ id, type: 'textarea' }));
    const { formId, path } = await givenPage('a saving form’s own', texts);
    const page = await browser.open(path);

    for (const { id } of texts) await page.fill(`[name=${id}]`, '日'.repeat(10_000));
    await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
    await send(page);
    await page.locator('h1.done').waitFor();

    const [stored] = await answersTo(formId);
    expect(Object.values(stored as object)).toEqual(texts.map(() => '日'.repeat(10_000)));
  });

  it('says before it is sent that its answers are too long together, and can be sent once they are shorter', async () => {
    const texts = ['one', 'two'].map((id) => ({ id, type: 'textarea', maxLength: 100_000 }));
    const { formId, path } = await givenPage('a form’s own', texts);
    const page = await browser.open(path);
    const posts: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') posts.push(request.url());
    });

    for (const { id } of texts) await page.fill(`[name=${id}]`, '日'.repeat(45_000));
    await send(page);
    await page.locator('#status.bad', { hasText: 'Your answers are too long together.' }).waitFor();
    const problems = await browser.audit(page);
    const before = [...posts];
    await page.fill('[name=two]', 'short');
    await send(page);
    await page.locator('h1.done').waitFor();

    expect([problems, before]).toEqual([[], []]);
    expect(await answersTo(formId)).toEqual([{ one: '日'.repeat(45_000), two: 'short' }]);
  });

  it.each(['a session’s', 'a form’s own', 'a saving form’s own'])(
    'keeps the answers, also over a reload, and forgets them once they are sent, on %s page',
    async (kind) => {
      const { formId, path } = await givenPage(kind, fields);
      const page = await browser.open(path);
      await fill(page);
      if (kind === 'a saving form’s own') await page.locator('#status', { hasText: /^Saved$/ }).waitFor();

      await page.context().setOffline(true);
      await send(page);
      await page.locator('#status', { hasText: 'You’re offline. Nothing was sent. Try again.' }).waitFor();
      // What is said is the same on each of these pages.
      const isAudited = kind === 'a form’s own';
      const refusal = isAudited ? await browser.audit(page) : [];
      await page.fill('[name=note]', 'Two\nlines, at last');
      await page.context().setOffline(false);
      await page.reload();
      await page.locator('.kept', { hasText: 'We kept your answers from' }).waitFor();
      const kept = isAudited ? await browser.audit(page) : [];
      expect(await page.inputValue('[name=email]')).toBe('ada@example.com');
      expect(await page.isChecked('[name=team][value=sound]')).toBe(true);
      await send(page);
      await page.locator('h1.done').waitFor();

      expect([refusal, kept]).toEqual([[], []]);
      expect(await page.evaluate('sessionStorage.length')).toBe(0);
      expect(await answersTo(formId)).toEqual([
        { plan: 'the-hidden-plan', email: 'ada@example.com', note: 'Two\nlines, at last', team: 'sound' },
      ]);
    },
  );

  it('takes no typing while it is being sent, and goes on where the person was', async () => {
    const { formId, path } = await givenPage('a form’s own', fields);
    const page = await browser.open(path);
    await fill(page);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/f/**', async (route) => {
      await held;
      await route.abort('connectionfailed');
    });

    await page.focus('[name=email]');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.locator('.actions button[aria-disabled=true]').waitFor();
    await page.keyboard.type('.lost');
    const meanwhile = await page.inputValue('[name=email]');
    release();
    await page.locator('.status.bad').waitFor();
    await page.keyboard.type('.uk');
    const after = await page.inputValue('[name=email]');
    await page.unrouteAll();
    await send(page);
    await page.locator('h1.done').waitFor();

    expect([meanwhile, after]).toEqual(['ada@example.com', 'ada@example.com.uk']);
    expect(await answersTo(formId)).toMatchObject([{ email: 'ada@example.com.uk' }]);
  });

  it('starts over for the next person', async () => {
    const { path } = await givenPage('a form’s own', fields);
    const page = await browser.open(path);
    await fill(page);
    await page.context().setOffline(true);
    await send(page);
    await page.locator('.status.bad').waitFor();
    await page.context().setOffline(false);
    await page.reload();

    await page.click('text=Start over');
    await page.locator('.kept').waitFor({ state: 'detached' });
    await page.reload();

    expect(await page.inputValue('[name=email]')).toBe('');
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  it.each([
    ['at once', 'a form’s own'],
    ['at once', 'a session’s'],
    ['after a reload', 'a form’s own'],
  ])(
    'makes one submission when its reply was lost and it is sent again %s, on %s page',
    async (when, kind) => {
      const { formId, path } = await givenPage(kind, fields);
      const page = await browser.open(path);
      await fill(page);

      await loseReplies(page);
      await send(page);
      await page.locator('#status', { hasText: 'stored only once' }).waitFor();
      const stored = await answersTo(formId);
      await page.unrouteAll();
      if (when === 'after a reload') {
        await page.reload();
        await page.locator('.kept').waitFor();
      }
      await send(page);
      await page.locator('h1.done').waitFor();

      expect(stored).toHaveLength(1);
      expect(await answersTo(formId)).toEqual(stored);
    },
  );

  it('says which files it could not keep, and keeps those that had arrived', async () => {
    const { formId, path } = await givenPage('a form’s own', [...fields, { ...cv, maxFiles: 2 }]);
    const page = await browser.open(path);
    await fill(page);
    await page.setInputFiles('[name=cv]', { ...file, name: 'first.txt' });
    await page.locator('.files button').waitFor();

    await page.context().setOffline(true);
    await page.setInputFiles('[name=cv]', file);
    await page.locator('.files .error').waitFor();
    await send(page);
    await page.locator('.status.bad').waitFor();
    await page.context().setOffline(false);
    await page.reload();
    await page.locator('.files .error').waitFor();

    expect(await page.textContent('.files .error')).toBe(
      'cv.txt couldn’t be uploaded. Choose the file again. We couldn’t keep it.',
    );
    await page.setInputFiles('[name=cv]', file);
    await page.locator('.files button').nth(1).waitFor();
    await send(page);
    await page.locator('h1.done').waitFor();
    expect(await answersTo(formId)).toMatchObject([
      { cv: [{ filename: 'first.txt' }, { filename: 'cv.txt' }] },
    ]);
  });

  it('stays while the service refuses it for now', async () => {
    await using limited = await startService({ env: { RATE_LIMIT: 'on' } });
    const form = await limited.givenPublishedForm({ fields });
    await using other = await startBrowser(limited);
    const page = await other.open(`/f/${form.id}`);
    await fill(page);
    // All at once: the limit is one of a minute.
    const post = () => limited.post(`/api/forms/${form.id}/submissions`, { answers: {} }, { key: null });
    await Promise.all(Array.from({ length: 60 }, post));

    await send(page);
    await page.locator('#status', { hasText: 'Too many attempts' }).waitFor();
    await page.reload();
    await page.locator('.kept').waitFor();

    expect(await page.inputValue('[name=email]')).toBe('ada@example.com');
    await other.expectNoProblems();
  });

  it.each([
    ['with script', 'a form’s own', 'archived', { javaScriptEnabled: true }],
    ['without script', 'a form’s own', 'closed', { javaScriptEnabled: false }],
    ['with script', 'a session’s', 'closed', { javaScriptEnabled: true }],
    ['without script', 'a session’s', 'cancelled', { javaScriptEnabled: false }],
  ])(
    'shows what was typed where it ended meanwhile, %s: %s page, %s',
    async (_script, kind, end, options) => {
      const { formId, path, sessionId } = await givenPage(kind, ofTwoSteps);
      const page = await browser.open(path, options);
      await fill(page, '<b>Two</b>\nlines');
      await page.setInputFiles('[name=cv]', file);
      if (options.javaScriptEnabled) await page.locator('.files button').waitFor();
      await send(page);
      await page.fill('[name=more]', 'More of it');

      await endOf(formId, sessionId)[end]?.();
      await send(page);
      await page.locator('.copy').waitFor();
      const problems = options.javaScriptEnabled ? await browser.audit(page) : [];

      const shown = await page.locator('.copy div').allInnerTexts();
      expect(shown).toEqual([
        'Email address\nada@example.com',
        'Your note\n<b>Two</b>\nlines',
        'Team\nSound',
        'More\nMore of it',
      ]);
      expect(await page.textContent('body')).not.toMatch(/the-hidden-plan|All my work/);
      expect(problems).toEqual([]);
      expect(await answersTo(formId)).toEqual([]);
    },
  );

  it('shows nothing that the page does not have', async () => {
    const { formId, path } = await givenPage('a form’s own', fields);
    await service.post(`/v1/forms/${formId}/archive`);
    const body = new URLSearchParams({
      plan: 'posted-plan',
      agent: 'x',
      note: 'typed',
      _issued: 'posted-token',
    });

    const refused = await service.call('POST', path, body, { key: null, headers: { accept: 'text/html' } });

    expect(refused.status).toBe(410);
    expect(refused.text).toContain('typed');
    expect(refused.text).not.toMatch(/posted-plan|posted-token|agent/);
  });

  async function givenPage(kind: string, given: object[]): Promise<Given> {
    if (kind === 'a session’s') {
      const { id, form_id } = await givenSession(service, { fields: given });
      return { formId: form_id, sessionId: id, path: `/f/${id}` };
    }
    const settings = { allowPartial: kind === 'a saving form’s own' };
    const { id } = await service.givenPublishedForm({ fields: given, settings });
    return { formId: id, sessionId: '', path: `/f/${id}` };
  }

  function endOf(formId: string, sessionId: string): Record<string, () => Promise<unknown>> {
    const definition = { name: 'Test', slug: 'test', delivery: { type: 'email' }, fields: ofTwoSteps };
    const settings = { closesAt: new Date(Date.now() - 1000).toISOString() };
    return {
      archived: () => service.post(`/v1/forms/${formId}/archive`),
      closed: () => service.post(`/v1/forms/${formId}/versions`, { ...definition, settings }),
      cancelled: () => service.post(`/v1/sessions/${sessionId}/cancel`),
    };
  }

  async function answersTo(formId: string): Promise<Record<string, unknown>[]> {
    const { submissions } = (await service.get(`/v1/forms/${formId}/submissions`)).json;
    return submissions.map(({ answers }: { answers: Record<string, unknown> }) => answers);
  }
});

async function fill(page: Page, note = 'Two\nlines'): Promise<void> {
  await page.fill('[name=email]', 'ada@example.com');
  await page.fill('[name=note]', note);
  await page.check('[name=team][value=sound]');
}

async function send(page: Page): Promise<void> {
  await page.click('button[value=forward]');
}

/** Lets posts arrive, and breaks off their connection in place of the reply. */
async function loseReplies(page: Page): Promise<void> {
  await page.route('**/f/*', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fetch();
    await route.abort('connectionreset');
  });
}

const ofTwoSteps = [...fields, cv, { id: 'more', type: 'text', label: 'More', page: 2 }];

type Given = { formId: string; sessionId: string; path: string };
