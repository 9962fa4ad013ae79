import { devices, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  answersOf,
  givenSession as givenSessionOf,
  startBrowser,
  type TestBrowser,
} from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { isMatrixFull } from '../support/covering.ts';
import { startService, type TestService } from '../support/server.ts';
import { everyType, keystrokes } from './every-type.ts';

describe.skipIf(noBrowser)('the hosted pages in a browser', () => {
  let service: TestService;
  let browser: TestBrowser;
  let open: TestBrowser['open'];

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
    open = browser.open;
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });
  afterEach(() => browser.expectNoProblems());

  const walks = [
    ['with script on a phone', phone],
    ['without script on a desk', { javaScriptEnabled: false }],
    ['with script on a desk', {}],
    ['without script on a phone', { ...phone, javaScriptEnabled: false }],
  ] as const;

  it.each(walks.slice(0, isMatrixFull ? 4 : 2))(
    'take every type of answer by keyboard alone, %s',
    async (_name, options) => {
      const session = await givenSession({ fields: everyType });
      const page = await open(`/f/${session.id}`, options);

      for (const [selector, keys] of keystrokes) {
        await page.focus(selector);
        for (const key of keys) await page.keyboard.press(key);
      }
      await expectWidth(page);
      await page.focus('button[value=forward]');
      await page.keyboard.press('Enter');
      await page.waitForSelector('.copy');

      const answers = await answersOf(service, session);
      expect(answers).toEqual({
        name: 'Ada',
        notes: 'a\nb',
        email: 'a@b.co',
        site: 'http://a.b',
        phone: '+4930123456',
        age: 7,
        laptop: true,
        consent: true,
        day: '2026-12-24',
        at: '10:30',
        call: expect.stringMatching(/^2026-12-24T10:30/),
        diet: 'vegan',
        track: 'eng',
        languages: ['en', 'de'],
        mood: 5,
        again: 0,
        order: ['2', '1', '3'],
        grid: { 1: '2', 2: '1' },
        boxes: { 2: ['4'] },
        home: { line1: '1 St', city: 'Bern', country: 'CH' },
        sign: { text: 'Ada' },
        initials: { text: 'AL' },
        colour: 'Red',
        pets: ['Owl'],
      });
    },
  );

  it('follow conditions as one answers, and go from step to step and back', async () => {
    const session = await givenSession({ fields: steps });
    const page = await open(`/f/${session.id}`);

    expect(await page.isVisible('[name=os]')).toBe(false);
    await page.check('[name=laptop][value=true]');
    expect(await page.isVisible('[name=os]')).toBe(true);
    await page.click('button[value=forward]');
    await page.waitForSelector('.summary:focus');
    await page.click('.summary a');
    await page.waitForSelector('[name=os]:focus');
    await page.keyboard.type('Linux');
    await page.click('button[value=forward]');
    await page.waitForSelector('[name=consent]');
    expect(await page.textContent('#step')).toBe('Step 2 of 2');
    await page.goBack();
    await page.waitForSelector('[name=os]');
    expect(await page.inputValue('[name=os]')).toBe('Linux');
    await page.goForward();
    await page.waitForSelector('[name=consent]');
    await page.check('[name=consent]');
    await page.dblclick('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await answersOf(service, session)).toEqual({ laptop: true, os: 'Linux', consent: true });
    expect(await service.countSubmissions()).toBeGreaterThan(0);
    await page.goBack();
    await page.locator('h1', { hasText: 'Already submitted' }).waitFor();
  });

  it('say "Saved" once it is, and go on where it stood in another browser', async () => {
    const session = await givenSession({ fields: steps, settings: { allowPartial: true } });
    const page = await open(`/f/${session.id}`);

    await page.check('[name=laptop][value=false]');
    await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
    const other = await open(`/f/${session.id}`);

    expect(await other.textContent('#step')).toBe('Step 2 of 2');
    const { session: read } = (await service.get(`/v1/sessions/${session.id}`)).json;
    expect(read.partial_answers).toMatchObject({ laptop: false });
  });

  it('save what could not be sent once the connection is back', async () => {
    const session = await givenSession({ fields: steps, settings: { allowPartial: true } });
    const page = await open(`/f/${session.id}`);

    await page.context().setOffline(true);
    await page.check('[name=laptop][value=false]');
    await page.locator('#status', { hasText: /^Not saved/ }).waitFor();
    await page.context().setOffline(false);
    await page.locator('#status', { hasText: /^Saved$/ }).waitFor();

    const { session: read } = (await service.get(`/v1/sessions/${session.id}`)).json;
    expect(read.partial_answers).toMatchObject({ laptop: false });
    // What Chromium says of each call without a connection: there is another after five seconds.
    const problems = new Set(browser.problems.splice(0));
    expect([...problems]).toEqual([expect.stringContaining('ERR_INTERNET_DISCONNECTED')]);
  });

  it('upload files with script, and let them be taken away again', async () => {
    const session = await givenSession({
      fields: [{ id: 'cv', type: 'file', required: true, maxFiles: 3, maxBytes: 100 }],
    });
    const page = await open(`/f/${session.id}`);
    const file = (name: string, size: number) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.alloc(size, 'a'),
    });

    await page.setInputFiles('[name=cv]', [file('one.txt', 10), file('two.txt', 20)]);
    await page.locator('.files button').nth(1).waitFor();
    await page.setInputFiles('[name=cv]', file('large.txt', 1000));
    await page.waitForSelector('.files .error');
    await page.click('.files li:has-text("one.txt") button');
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await answersOf(service, session)).toMatchObject({ cv: [{ filename: 'two.txt', size: 20 }] });
  });

  it.each([
    ['with script', {}],
    ['without script', { javaScriptEnabled: false }],
  ])(
    'make one submission of a double click, thank for it, and make no other on a reload, %s',
    async (script, options) => {
      const session = await givenSession({});
      const page = await open(`/f/${session.id}`, options);

      await page.fill('[name=email]', 'ada@example.com');
      await page.dblclick('button[value=forward]');
      await page.waitForSelector('.copy');
      await page.reload();
      // A browser without script posts the page once more; the script has fetched the thanks.
      if (script === 'without script') await page.waitForSelector('.copy');
      else await page.locator('h1', { hasText: 'Already submitted' }).waitFor();
      await page.goBack();

      expect(await page.textContent('body')).not.toContain('Thank you');
      const { submissions } = (await service.get(`/v1/forms/${session.form_id}/submissions`)).json;
      expect(submissions).toHaveLength(1);
    },
  );

  it('pass over a step that nobody needs to answer', async () => {
    const fields = [
      { id: 'nick', type: 'text' },
      { id: 'consent', type: 'checkbox', required: true, page: 2 },
    ];
    const session = await givenSession({ fields, settings: { allowPartial: true } });
    const page = await open(`/f/${session.id}`);

    await page.click('button[value=forward]');
    await page.check('[name=consent]');
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await answersOf(service, session)).toEqual({ consent: true });
  });

  it.each([
    ['dark as the device is', 'dark', 'auto', 'rgb(28, 31, 38)', 'rgb(0, 0, 0)'],
    ['light as the device is', 'light', 'auto', 'rgb(255, 255, 255)', 'rgb(0, 0, 0)'],
    ['dark as the form is', 'light', 'dark', 'rgb(28, 31, 38)', 'rgb(0, 0, 0)'],
    ['light as the form is', 'dark', 'light', 'rgb(255, 255, 255)', 'rgb(0, 0, 0)'],
  ] as const)('are %s, whatever accent they have', async (_, colorScheme, mode, card, onAccent) => {
    const session = await givenSession({ settings: { theme: { accentColor: '#ffd400', mode } } });
    const page = await open(`/f/${session.id}`, { colorScheme });

    expect(await styleOf(page, 'main', 'background-color')).toBe(card);
    expect(await styleOf(page, 'button', 'color')).toBe(onAccent);
  });

  it('run from right to left, without sticking out of a phone, also at four times the size', async () => {
    const session = await givenSession({ fields: everyType, settings: { locale: 'ar' } });
    const page = await open(`/f/${session.id}`, { viewport: { width: 320, height: 256 } });

    await expectWidth(page);
    const [label, control] = await Promise.all([
      page.locator('label[for="name.0"]').boundingBox(),
      page.locator('[name=name]').boundingBox(),
    ]);
    expect(await styleOf(page, 'main', 'direction')).toBe('rtl');
    expect(label?.x).toBe(control?.x);
  });

  it('keep still while they load: nothing moves after the first paint', async () => {
    const session = await givenSession({ fields: everyType });
    const page = await open(`/f/${session.id}`);

    const shift = await page.evaluate(`new Promise((resolve) => {
      let sum = 0;
      new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
        .observe({ type: 'layout-shift', buffered: true });
      requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
    })`);

    expect(shift).toBe(0);
  });

  function styleOf(page: Page, selector: string, property: string): Promise<unknown> {
    return page.evaluate(
      `getComputedStyle(document.querySelector('${selector}')).getPropertyValue('${property}')`,
    );
  }

  async function expectWidth(page: Page): Promise<void> {
    const [width, room] = [
      await page.locator('html').evaluate((html) => html.scrollWidth),
      page.viewportSize()?.width ?? 0,
    ];
    expect(width).toBeLessThanOrEqual(room);
  }

  function givenSession(definition: Parameters<typeof givenSessionOf>[1]) {
    return givenSessionOf(service, definition);
  }
});

/** As narrow as phones are, touched instead of clicked. */
const phone = { ...devices['iPhone SE'], viewport: { width: 320, height: 640 } };

const steps = [
  { id: 'laptop', type: 'boolean', required: true },
  { id: 'os', type: 'text', required: true, visibleWhen: { field: 'laptop', op: 'eq', value: true } },
  { id: 'consent', type: 'checkbox', required: true, page: 2 },
];
