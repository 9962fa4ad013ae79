import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('the looks of a form', () => {
  let service: TestService;
  let browser: TestBrowser;
  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
  });
  afterEach(() => browser?.expectNoProblems());
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  const options = ['No', 'Somewhat', 'Very'].map((label) => ({ label, value: label }));

  it('has links to change answers on the line of the answer', async () => {
    const fields = [{ id: 'name', type: 'text' }];
    const { id } = await service.givenPublishedForm({ fields, settings: { review: true } });
    const page = await browser.open(`/f/${id}?lang=de`);
    await page.fill('[name=name]', 'Ada');
    await page.click('button[value=forward]');

    const answer = await page.locator('.review dd').first().boundingBox();
    const change = await page.locator('.review button').boundingBox();

    expect(Math.abs((answer?.y ?? 0) - (change?.y ?? 99))).toBeLessThan(4);
  });

  it('has columns of one width in a matrix', async () => {
    const rows = [{ label: 'Exercises on the second day', value: 'a' }];
    const { id } = await service.givenPublishedForm({
      fields: [{ id: 'grid', type: 'matrix', rows, options }],
    });
    const page = await browser.open(`/f/${id}`);

    const widths = await Promise.all(
      (await page.locator('.column-head').all()).map(async (head) => (await head.boundingBox())?.width ?? 0),
    );

    expect(new Set(widths.map(Math.round)).size).toBe(1);
  });

  it('offers to send another response on a form’s own page, which begins empty', async () => {
    const { id } = await service.givenPublishedForm({ fields: [{ id: 'name', type: 'text' }] });
    const page = await browser.open(`/f/${id}?lang=de`);
    await page.fill('[name=name]', 'Ada');
    await page.click('button[value=forward]');

    await page.click('text=Noch eine Antwort senden');
    await page.waitForSelector('[name=name]');

    expect(await page.inputValue('[name=name]')).toBe('');
    expect(page.url()).toMatch(/\?lang=de$/);
  });

  it('is at most 40 rem wide within a site, and without a background if the site wants that', async () => {
    await using site = await startSite(
      () =>
        `<!doctype html><body><style>button { color: rgb(1, 2, 3) }</style><script src="${service.url}/embed.js" data-form="${id}" data-transparent></script>` +
        `<script src="${service.url}/embed.js" data-form="${id}" data-popup="Write to us"></script>`,
    );
    const { id } = await service.givenPublishedForm({ settings: { embedOrigins: [site.origin] } });
    const page = await browser.open(site.origin, { viewport: { width: 1280, height: 800 } });
    const main = page.frameLocator('iframe').locator('.transparent main');
    await main.waitFor();

    const { width = 0 } = (await main.boundingBox()) ?? {};
    const button = await page.evaluate(
      `[getComputedStyle(document.querySelector('button')).color, getComputedStyle(document.querySelector('button')).fontWeight]`,
    );

    expect(width).toBeLessThanOrEqual(640);
    expect(button).toEqual(['rgb(1, 2, 3)', '600']);
  });
});
