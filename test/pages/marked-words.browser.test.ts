import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('the words of a page', () => {
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

  /** The language and the direction of an element, as a screen reader knows them. */
  const languageAt = (page: Page, selector: string) =>
    page.evaluate<string>(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)});
      return element.closest('[lang]').lang + ' ' + getComputedStyle(element).direction;
    })()`);

  it.each([
    ['nl', 'en-US', 'nl ltr', 'en ltr'],
    ['he', 'en-US', 'he rtl', 'en ltr'],
    ['he', 'ar', 'he rtl', 'ar rtl'],
    ['de', 'en-US', 'de ltr', 'de ltr'],
  ])('are marked in a form of %s for a reader of %s', async (locale, reader, theirs, ours) => {
    const session = await givenSession(service, {
      name: 'Vragen',
      fields: [
        { id: 'name', type: 'text', label: 'Naam', required: true, description: 'Voluit', maxLength: 5 },
        {
          id: 'colour',
          type: 'radio',
          label: 'Kleur',
          options: [{ label: 'Rood', value: 'r' }],
          allowOther: true,
        },
        { id: 'sure', type: 'boolean', label: 'Zeker?' },
        { id: 'at', type: 'datetime', label: 'Wanneer', page: 2 },
      ],
      settings: { locale, review: true, submitLabel: 'Verstuur', successMessage: 'Bedankt' },
    });
    const page = await browser.open(`/f/${session.id}`, { locale: reader });
    const next = async () => page.click('button[value=forward]');

    expect(await page.getAttribute('html', 'lang')).toBe(locale);
    for (const selector of ['h1', 'label[for="name.0"]', '.help', 'legend', '.choice span', '[name=name]'])
      expect([selector, await languageAt(page, selector)]).toEqual([selector, theirs]);
    for (const selector of [
      '#step',
      '.hint',
      '.note',
      'label .sr',
      '[data-other] + span',
      '[data-field=sure] .choice span',
      'button[value=forward]',
    ])
      expect([selector, await languageAt(page, selector)]).toEqual([selector, ours]);
    await next();
    await page.waitForSelector('.summary');
    expect(await languageAt(page, '.error')).toBe(ours);
    expect(await browser.audit(page)).toEqual([]);
    await page.fill('[name=name]', 'Ada');
    await next();
    await page.fill('[name=at]', '2026-07-01T10:00');
    await next();
    await page.waitForSelector('.review');
    for (const selector of [
      '.review dt',
      '.review dd',
      'button[value=forward] span, button[value=forward]:not(:has(span))',
    ])
      expect([selector, await languageAt(page, selector)]).toEqual([selector, theirs]);
    for (const selector of ['h1', '.review .none', '.review button'])
      expect([selector, await languageAt(page, selector)]).toEqual([selector, ours]);
    expect(await browser.audit(page)).toEqual([]);
    await next();
    await page.waitForSelector('.copy');
    for (const selector of ['.lead', '.copy dt', '.copy dd', '.form-name'])
      expect([selector, await languageAt(page, selector)]).toEqual([selector, theirs]);
    for (const selector of ['h1', '.copy h2'])
      expect([selector, await languageAt(page, selector)]).toEqual([selector, ours]);
    expect(await browser.audit(page)).toEqual([]);
    await browser.expectNoProblems();
  });

  it('follow the reader to a language that has some', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'name', type: 'text', label: 'Naam', required: true }],
      settings: { locale: 'nl' },
      translations: { de: { fields: { name: { label: 'Name' } } } },
    });
    const page = await browser.open(`/f/${session.id}?lang=nl`);
    expect(await languageAt(page, 'button[value=forward]')).toBe('en ltr');
    await page.click('.languages a');
    await page.waitForSelector('html[lang=de]');

    expect(await languageAt(page, 'button[value=forward]')).toBe('de ltr');
    expect(await page.getAttribute('main', 'lang')).toBeNull();
    await page.click('.languages a');
    await page.waitForSelector('html[lang=nl]');
    expect(await languageAt(page, 'button[value=forward]')).toBe('en ltr');
    await browser.expectNoProblems();
  });

  it.each([
    ['with script', true],
    ['without script', false],
  ])('count the steps that the answers opened, %s', async (_name, javaScriptEnabled) => {
    const when = (field: string, value: unknown) => ({ field, op: 'eq', value });
    const session = await givenSession(service, {
      name: 'Order',
      fields: [
        { id: 'gift', type: 'boolean' },
        { id: 'card', type: 'text', page: 2, visibleWhen: when('gift', true) },
        { id: 'sign', type: 'text', page: 3, visibleWhen: { field: 'card', op: 'notEmpty' } },
      ],
      settings: { submitLabel: 'Order now' },
    });
    const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled });
    const said = async () => [
      await page
        .locator('#step')
        .innerText()
        .catch(() => ''),
      await page.locator('button[value=forward]').innerText(),
    ];
    const next = () => page.click('button[value=forward]');

    expect(await page.locator('#step').isVisible()).toBe(false);
    expect((await said())[1]).toBe('Order now');
    await page.check('[name=gift][value=true]');
    await next();
    await page.waitForSelector('[name=card]:visible');
    expect(await said()).toEqual(['Step 2 of 2', 'Order now']);
    await page.fill('[name=card]', 'Hello');
    await next();
    await page.waitForSelector('[name=sign]:visible');
    expect(await said()).toEqual(['Step 3 of 3', 'Order now']);
    await next();
    await page.waitForSelector('h1.done');
    await browser.expectNoProblems();
  });
});
