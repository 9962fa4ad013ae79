import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const definition = { fields: [{ label: 'Deploy?', type: 'boolean', required: true }] };
const context = {
  title: 'Release 4.2',
  text: 'Two changes.\nOne is a fix.',
  items: [
    { label: 'Where', value: 'https://example.com/releases/4.2', kind: 'link' },
    { label: 'Change', value: `--- a\n+++ b\n-  ${'old '.repeat(60)}\n+\tnew`, kind: 'diff' },
    { label: 'Command', value: 'if x:\n    deploy()', kind: 'code' },
    { label: 'Note', value: '<b>plain</b>', kind: 'text' },
  ],
};

describe.skipIf(noBrowser)('the page of a question', () => {
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

  async function ask(more: object = {}) {
    const { json } = await service.post('/v1/sessions', {
      definition,
      context,
      allow_decline: true,
      ...more,
    });
    return json.session as { id: string };
  }
  const read = async (id: string) => (await service.get(`/v1/sessions/${id}`)).json;
  /** axe is a script itself: a page without one is audited with its own scripts emptied. */
  async function expectAccessible(page: Page, scripted: boolean): Promise<void> {
    if (scripted) {
      expect(await browser.audit(page)).toEqual([]);
      return;
    }
    const plain = await browser.open('/');
    await plain.route('**/*.js', (route) => route.fulfill({ contentType: 'text/javascript', body: '' }));
    await plain.goto(page.url());
    expect(await browser.audit(plain)).toEqual([]);
  }
  const overflows = (page: Page) =>
    page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');

  it.each([
    ['with script', { javaScriptEnabled: true }],
    ['without script', { javaScriptEnabled: false }],
    ['from right to left', { javaScriptEnabled: true, locale: 'ar' }],
  ])('shows what it is about, light and dark, and can be answered on a phone, %s', async (_name, options) => {
    const session = await ask();
    const page = await browser.open(`/f/${session.id}`, {
      viewport: { width: 360, height: 740 },
      ...options,
    });

    const link = page.locator('.context a');
    expect(await page.textContent('.context h2')).toBe('Release 4.2');
    expect([await link.getAttribute('href'), await page.textContent('.context .host')]).toEqual([
      'https://example.com/releases/4.2',
      '(example.com)',
    ]);
    expect(await page.locator('.context pre').first().textContent()).toContain('+\tnew');
    expect(await page.locator('.context pre').nth(1).textContent()).toBe('if x:\n    deploy()');
    expect(await page.textContent('.context dl')).toContain('<b>plain</b>');
    expect(await page.evaluate("getComputedStyle(document.querySelector('.code code')).whiteSpace")).toBe(
      'pre',
    );
    expect(await overflows(page)).toBe(false);
    await expectAccessible(page, options.javaScriptEnabled !== false);
    if (options.javaScriptEnabled) {
      await page.emulateMedia({ colorScheme: 'dark' });
      await expectAccessible(page, true);
    }
    await page.check('input[value=true]');
    await page.click('form:not(.decline form) button[value=forward]');
    await page.waitForSelector('h1.done');

    expect(await read(session.id)).toMatchObject({
      session: { outcome: 'submitted' },
      submission: { answers: { deploy: true } },
    });
  });

  it.each([
    ['with script', true],
    ['without script', false],
  ])('can be declined with a reason, %s', async (_name, javaScriptEnabled) => {
    const session = await ask();
    const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled });

    await page.click('.decline summary');
    await expectAccessible(page, javaScriptEnabled);
    await page.fill('#decline-reason', 'Ask Ann');
    await page.click('.decline button');
    await page.waitForSelector('h1:has-text("You declined to answer")');
    await expectAccessible(page, javaScriptEnabled);

    expect((await read(session.id)).session).toMatchObject({ outcome: 'declined', reason: 'Ask Ann' });
  });

  it.each([
    ['with script', true],
    ['without script', false],
  ])('asks its respondent for the code that was mailed, %s', async (name, javaScriptEnabled) => {
    const email = `ada-${name.replaceAll(' ', '-')}@example.com`;
    const session = await ask({ respondent: { email } });
    const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled });

    expect(await page.textContent('body')).not.toContain('Release 4.2');
    await expectAccessible(page, javaScriptEnabled);
    await page.click('button[value=send]');
    await page.waitForSelector('#code');
    const code = await until(async () =>
      (await service.mails())
        .filter((mail) => mail.includes(email))
        .map((mail) => /^Subject: (\d{6}) /m.exec(mail)?.[1])
        .find((found) => found !== undefined),
    );
    await page.fill('#code', code === '000000' ? '000001' : '000000');
    await page.click('button[value=give]');
    await page.waitForSelector('.error');
    expect(await page.getAttribute('#code', 'aria-invalid')).toBe('true');
    await page.fill('#code', code);
    await page.click('button[value=give]');
    await page.waitForSelector('.context');
    await expectAccessible(page, javaScriptEnabled);
    await page.check('input[value=true]');
    await page.click('form:not(.decline form) button[value=forward]');
    await page.waitForSelector('h1.done');

    expect((await read(session.id)).submission).toMatchObject({
      answers: { deploy: true },
      respondent: { method: 'email_code', email },
    });
  });

  it.each(['submitted', 'declined'])(
    'leads back with the session and its outcome where asked: %s',
    async (outcome) => {
      const session = await ask({ return_url: 'https://app.example.com/back?a=1', return_outcome: true });
      const go = outcome === 'declined' ? 'decline' : 'forward';
      const { status, headers } = await fetch(`${service.url}/f/${session.id}`, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams({ deploy: 'true', _shown: 'deploy', _page: '1', _go: go }),
      });

      expect([status, headers.get('location')]).toEqual([
        303,
        `https://app.example.com/back?a=1&session_id=${session.id}&outcome=${outcome}`,
      ]);
    },
  );
});
