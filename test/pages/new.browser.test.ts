import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('the page that creates forms', () => {
  let service: TestService;
  let closed: TestService;
  let browser: TestBrowser;
  beforeAll(async () => {
    service = await startService();
    closed = await startService({ env: { ALLOW_PUBLIC_CREATE: 'false' } });
    browser = await startBrowser(service);
  });
  afterEach(() => browser?.expectNoProblems());
  afterAll(async () => {
    await Promise.all([browser, service, closed].map((each) => each?.[Symbol.asyncDispose]()));
  });

  const inPreview = (page: Page) => page.frameLocator('#preview iframe');

  it('is the first thing on the service’s first page, and shows an example as its page is', async () => {
    const page = await browser.open('/');
    await page.locator('.places a').first().click();
    await inPreview(page).getByRole('heading', { name: 'Contact us' }).waitFor();
    await page.click('text=Order');
    const send = inPreview(page).getByRole('button', { name: 'Place order' });
    // The button can be there before the styles of its page.
    await expect.poll(() => send.evaluate(colorOf)).toBe('rgb(157, 23, 77)');
    const sandbox = await page.getAttribute('#preview iframe', 'sandbox');

    await send.click();

    // What the test itself runs there.
    const others = browser.problems.splice(0).filter((each) => !each.startsWith('Blocked script execution'));
    expect(others).toEqual([]);
    expect(sandbox).toBe('');
    expect(await inPreview(page).locator('.summary').count()).toBe(0);
  });

  it('leads from a problem to its line, and to the activation, by keyboard alone', async () => {
    const page = await browser.open('/new');
    await inPreview(page).getByRole('heading', { name: 'Contact us' }).waitFor();
    const written = await page.inputValue('#definition');
    await page.focus('#definition');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(written.replace('"textarea"', '"essay"'));
    await page.waitForSelector('text=1 problem, in line');

    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const selected = String(await page.evaluate('String(getSelection())'));
    await page.keyboard.insertText(selected.replace('"essay"', '"textarea"'));
    await page.waitForSelector('text=No problems.');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/activate?token=*');
    await page.fill('#email', 'owner@example.com');
    await page.click('main button');

    expect(selected).toContain('"type": "essay"');
    expect(await page.textContent('main')).toContain('Contact us');
  });

  it('brings the text back after a reload, and the former one by undo', async () => {
    const page = await browser.open('/new');
    await page.fill('#definition', '{"name": "Mine"}');
    await page.reload();
    const kept = await page.inputValue('#definition');
    await page.click('text=Survey');
    const example = await page.inputValue('#definition');
    await page.focus('#definition');
    await page.keyboard.press('ControlOrMeta+z');

    expect(kept).toBe('{"name": "Mine"}');
    expect(example).toContain('How was the workshop?');
    expect(await page.inputValue('#definition')).toBe(kept);
  });

  it('takes a pasted key where one is needed, and keeps it nowhere', async () => {
    const page = await browser.open(`${closed.url}/new`);
    await page.waitForSelector('text=needs an API key');
    await page.fill('#key', closed.key);
    await page.press('#key', 'Tab');
    await inPreview(page).getByRole('heading', { name: 'Contact us' }).waitFor();
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
    await page.reload();
    const afterwards = await page.inputValue('#key');
    await page.fill('#key', closed.key);
    await page.click('#create');
    await page.waitForURL('**/activate?token=*');

    expect(stored).not.toContain(closed.key);
    expect(afterwards).toBe('');
    const { forms } = (await closed.get('/v1/forms')).json;
    expect(forms.filter(({ name }: { name: string }) => name === 'Contact us')).toHaveLength(1);
  });

  it('says without script how to use curl, by a command that works', async () => {
    const page = await browser.open('/new', { javaScriptEnabled: false });

    const command = await page.locator('noscript code, main > code').first().textContent();
    const { stdout } = await promisify(execFile)('sh', ['-c', command ?? '']);

    expect(JSON.parse(stdout)).toMatchObject({ form: { status: 'draft' } });
    expect(await page.isVisible('#definition')).toBe(false);
  });

  it.each([
    ['wide', { viewport: { width: 1280, height: 900 } }],
    ['320 pixels wide, dark', { viewport: { width: 320, height: 700 }, colorScheme: 'dark' }],
    ['in forced colours', { forcedColors: 'active' }],
  ] as const)('has no accessibility problem %s', async (_, options) => {
    const page = await browser.open('/new', options);
    await page.click('text=Job application');
    await page.locator('#step').waitFor();
    const previewed = await browser.audit(page);
    await page.fill('#definition', '{"name": "Mine"}');
    await page.waitForSelector('#problems a');

    expect([previewed, await browser.audit(page)]).toEqual([[], []]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  });
});

/** Runs in the page. */
function colorOf(element: Element): string {
  return getComputedStyle(element).backgroundColor;
}

declare const getComputedStyle: (element: Element) => { backgroundColor: string };
type Element = object;
