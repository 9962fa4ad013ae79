import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('a form of named steps that ends with a review', () => {
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

  it.each([
    ['with script', true, true],
    ['with script, keeping nothing', true, false],
    ['without script', false, true],
    ['without script, keeping nothing', false, false],
  ])(
    'is filled in, looked over, changed and sent on a phone, %s',
    async (_name, javaScriptEnabled, allowPartial) => {
      const session = await givenSession(service, {
        fields,
        pages,
        settings: { review: true, allowPartial },
      });
      const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled, viewport });
      // Pages of forms that keep nothing differ in hidden inputs alone.
      const isAudited = javaScriptEnabled && allowPartial;

      expect(await page.textContent('h2.step')).toBe('About you');
      await expectFine(page, isAudited);
      await page.fill('[name="home.line1"]', '1 Main St');
      await page.selectOption('[name="home.country"]', 'CH');
      await next(page);
      await page.waitForSelector('.summary');
      expect(await page.textContent('.summary a')).toBe('Home – Enter “Town or city”.');
      expect(await page.getAttribute('.summary a', 'href')).toBe('#home.2');
      await expectFine(page, isAudited);
      await page.fill('[name="home.city"]', 'Bern');
      await next(page);

      await page.waitForSelector('[data-ranking]');
      expect(await page.textContent('h1')).toBe('Your wishes');
      await page.check('[name="grid.room"][value=good]');
      await page.click('[data-ranking] li:first-child button:last-child');
      await page.waitForSelector('[data-ranking] li:first-child:has-text("Speed")');
      await page.check('[data-other]');
      await page.fill('[name="colour.other"]', 'Green');
      await expectFine(page, isAudited);
      await next(page);
      await page.waitForSelector('.summary');
      expect(await page.textContent('.summary a')).toBe('Grid – Choose an option for “Staff”.');
      expect(await page.inputValue('[name="colour.other"]')).toBe('Green');
      await page.check('[name="grid.staff"][value=bad]');
      await next(page);

      await page.waitForSelector('.review');
      await expectFine(page, isAudited);
      expect(await page.locator('.review dd:nth-of-type(1)').allTextContents()).toEqual([
        '1 Main St\nBern\nSwitzerland',
        'Room: Good\nStaff: Bad',
        '1. Speed\n2. Price',
        'Green',
      ]);
      await page.click('.review div:first-child button');
      await page.fill('[name="home.line2"]', 'Top floor');
      await next(page);
      await page.waitForSelector('[data-ranking]');
      await next(page);
      await page.waitForSelector('.review');
      expect(await service.countSubmissions()).toBe(sent);
      await next(page);
      await page.waitForSelector('.copy');
      sent += 1;

      expect(await answersOf(service, session)).toEqual({
        home: { line1: '1 Main St', line2: 'Top floor', city: 'Bern', country: 'CH' },
        grid: { room: 'good', staff: 'bad' },
        order: ['speed', 'price'],
        colour: 'Green',
      });
    },
  );

  it('orders options by dragging them', async () => {
    const session = await givenSession(service, { fields: [{ id: 'order', type: 'ranking', options }] });
    const page = await browser.open(`/f/${session.id}`);
    const [grip, last] = await Promise.all(
      ['first', 'last'].map((place) => page.locator(`.ranking li:${place}-child .grip`).boundingBox()),
    );
    if (!grip || !last) throw new Error('There is nothing to drag');

    await page.mouse.move(grip.x + 5, grip.y + 5);
    await page.mouse.down();
    await page.mouse.move(last.x + 5, last.y + last.height, { steps: 5 });
    await page.mouse.up();
    expect(await page.textContent('#status')).toBe('“Price” is now number 2 of 2.');
    await next(page);
    await page.waitForSelector('.copy');
    sent += 1;

    expect(await answersOf(service, session)).toEqual({ order: ['speed', 'price'] });
  });

  it('leaves the order that nobody has touched out, where none is required', async () => {
    const session = await givenSession(service, {
      fields: [
        { id: 'order', type: 'ranking', options },
        { id: 'must', type: 'ranking', options, required: true },
      ],
    });
    const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled: false });

    await next(page);
    await page.waitForSelector('.copy');
    sent += 1;

    expect(await answersOf(service, session)).toEqual({ must: ['price', 'speed'] });
  });

  async function expectFine(page: Page, isAudited: boolean): Promise<void> {
    const width = await page.locator('html').evaluate((html) => html.scrollWidth);
    expect(width).toBeLessThanOrEqual(viewport.width);
    if (isAudited) expect(await browser.audit(page)).toEqual([]);
  }
});

async function next(page: Page): Promise<void> {
  await page.click('button[value=forward]');
}

/** The submissions of the tests so far, which share a database. */
let sent = 0;

const viewport = { width: 360, height: 640 };

const options = [
  { label: 'Price', value: 'price' },
  { label: 'Speed', value: 'speed' },
];

const verdicts = [
  { label: 'Good', value: 'good' },
  { label: 'Bad', value: 'bad' },
];

const rows = [
  { label: 'Room', value: 'room' },
  { label: 'Staff', value: 'staff' },
];

const pages = [{ title: 'About you', description: 'Where we can find you.' }, { title: 'Your wishes' }];

const fields = [
  { id: 'home', type: 'address', required: true },
  { id: 'grid', type: 'matrix', page: 2, required: true, rows, options: verdicts },
  { id: 'order', type: 'ranking', page: 2, required: true, options },
  { id: 'colour', type: 'radio', page: 2, allowOther: true, options },
];
