import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { languages } from '../../src/text/words.ts';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describe.skipIf(noBrowser)('what a person types', () => {
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

  const submit = async (page: Page) => {
    await page.click('button[value=forward]');
  };
  const errors = (page: Page) => page.locator('p.error:visible').allTextContents();

  it.each(Object.keys(languages))(
    'numbers are read as people of the language %s write them',
    async (locale) => {
      const values = [1500, 3.5, -1_234_567.25, 12_345];
      const fields = values.flatMap((value, index) => [
        { id: `n${index}`, type: 'number' },
        // The page's script decides by the same reading.
        { id: `w${index}`, type: 'text', visibleWhen: { field: `n${index}`, op: 'eq', value } },
      ]);
      const session = await givenSession(service, { fields, settings: { locale } });
      const page = await browser.open(`/f/${session.id}`);

      for (const [index, value] of values.entries()) {
        const useGrouping = index % 2 === 0 ? 'always' : false;
        await page.fill(
          `[name=n${index}]`,
          new Intl.NumberFormat(locale, { useGrouping, maximumFractionDigits: 9 }).format(value),
        );
        await page.fill(`[name=w${index}]`, 'seen');
      }
      await submit(page);

      const expected = values.flatMap((value, index) => [
        [`n${index}`, value],
        [`w${index}`, 'seen'],
      ]);
      expect(await answersOf(service, session)).toEqual(Object.fromEntries(expected));
    },
  );

  it('a number with several readings is asked for, and its answers are shown as they are typed', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'price', type: 'number', min: 0.5, step: 0.5, label: 'Preis' }],
      settings: { locale: 'de', review: true },
    });
    const page = await browser.open(`/f/${session.id}`);

    expect(await page.textContent('[id="price.hint"]')).toContain('0,5');
    expect(await page.getAttribute('[name=price]', 'inputmode')).toBe('decimal');
    await page.fill('[name=price]', '1.5');
    await submit(page);
    await page.waitForSelector('.summary');
    expect(await errors(page)).toEqual(['Fehler: Geben Sie eine Zahl ein. Meinten Sie 1,5 oder 15?']);
    expect(await page.inputValue('[name=price]')).toBe('1.5');
    expect(await browser.audit(page)).toEqual([]);
    await page.fill('[name=price]', '0,7');
    await submit(page);
    await page.waitForSelector('.summary');
    expect(await errors(page)).toEqual(['Fehler: Geben Sie ein Vielfaches von 0,5 ein.']);
    await page.fill('[name=price]', '1.500,5');
    await submit(page);
    await page.waitForSelector('dl.review');
    expect(await page.textContent('dl.review dd')).toBe('1500,5');
    await page.click('button[value="page:1"]');
    await page.waitForSelector('[name=price]');
    expect(await page.inputValue('[name=price]')).toBe('1500,5');
    await submit(page);
    await page.waitForSelector('dl.review');
    await submit(page);
    expect(await answersOf(service, session)).toEqual({ price: 1500.5 });
  });

  it.each([true, false])(
    'a number stays the same when the page changes its language (script: %s)',
    async (javaScriptEnabled) => {
      const { id } = await service.givenPublishedForm({
        fields: [
          { id: 'price', type: 'number' },
          { id: 'note', type: 'text', page: 2 },
        ],
        settings: { locale: 'de' },
        translations: { en: { name: 'Form' } },
      });
      const page = await browser.open(`/f/${id}?lang=de`, { javaScriptEnabled });
      await page.fill('[name=price]', '1.500,5');
      if (javaScriptEnabled) {
        await page.click('.languages a');
        await until(async () => (await page.getAttribute('html', 'lang')) === 'en');
        expect(await page.inputValue('[name=price]')).toBe('1500.5');
      }
      await submit(page);
      await page.waitForSelector('[name=note]');
      await submit(page);
      await page.waitForSelector('h1.done');

      const { submissions } = (await service.get(`/v1/forms/${id}/submissions`)).json;
      expect(submissions[0].answers).toEqual({ price: 1500.5 });
    },
  );

  it('the page of the version before, which names no language, is read plainly', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'n', type: 'number' }],
      settings: { locale: 'de' },
    });

    await service.post(
      `/f/${session.id}`,
      new URLSearchParams({ n: '1.5', _shown: 'n', _page: '1', _go: 'forward' }),
      {
        key: null,
        headers: { origin: service.url },
      },
    );

    expect(await answersOf(service, session)).toEqual({ n: 1.5 });
  });

  describe('of a date or time is incomplete', () => {
    const fields = [
      { id: 'day', type: 'date' },
      { id: 'hour', type: 'time' },
      { id: 'start', type: 'datetime' },
      { id: 'note', type: 'text' },
    ];
    const typed = { day: '05/01', hour: '10', start: '05012026' };
    const said = {
      day: 'Error: This date is incomplete or doesn’t exist. Enter day, month and year.',
      hour: 'Error: This time is incomplete. Enter hours and minutes.',
      start:
        'Error: This date and time is incomplete or doesn’t exist. Enter day, month, year, hours and minutes.',
    };

    it.each(Object.entries(typed))('is said at the field %s before it is sent', async (id, text) => {
      const session = await givenSession(service, { fields });
      const page = await browser.open(`/f/${session.id}`);
      await page.focus(`[name=${id}]`);
      await page.keyboard.type(text);
      await submit(page);

      expect(await errors(page)).toEqual([said[id as keyof typeof said]]);
      expect(await page.getAttribute(`[name=${id}]`, 'aria-invalid')).toBe('true');
      expect(await page.getAttribute(`[name=${id}]`, 'aria-describedby')).toContain(`${id}.incomplete`);
      expect(await page.evaluate('document.activeElement.name')).toBe(id);
      expect(await browser.audit(page)).toEqual([]);
      expect((await service.get(`/v1/sessions/${session.id}`)).json.session.status).toBe('open');

      // Taken back, nothing is wrong.
      await page.fill(`[name=${id}]`, '');
      await submit(page);
      expect(await answersOf(service, session)).toEqual({});
    });

    it('is said for a day that no month has', async () => {
      const session = await givenSession(service, { fields });
      const page = await browser.open(`/f/${session.id}`);
      await page.focus('[name=day]');
      await page.keyboard.type('02302026');
      await submit(page);

      expect(await errors(page)).toEqual([said.day]);
    });

    it('is said when other answers are saved, and what was saved of it stays', async () => {
      const session = await givenSession(service, { fields, settings: { allowPartial: true } });
      const page = await browser.open(`/f/${session.id}`);
      await page.fill('[name=day]', '2026-05-01');
      const saved = async () =>
        (await service.get(`/v1/sessions/${session.id}`)).json.session.partial_answers;
      await until(async () => (await saved())?.day === '2026-05-01');
      await page.focus('[name=day]');
      await page.keyboard.press('Backspace');
      await page.fill('[name=note]', 'on');

      await until(async () => (await saved())?.note === 'on');
      expect(await errors(page)).toEqual([said.day]);
      expect(await saved()).toMatchObject({ day: '2026-05-01', note: 'on' });
    });
  });

  it('a year of two digits is asked for', async () => {
    const session = await givenSession(service, { fields: [{ id: 'day', type: 'date' }] });
    const page = await browser.open(`/f/${session.id}`);
    await page.fill('[name=day]', '0024-05-01');
    await submit(page);
    await page.waitForSelector('.summary');

    expect(await errors(page)).toEqual(['Error: Enter a date. Did you mean 2024?']);
    await page.fill('[name=day]', '2024-05-01');
    await submit(page);
    expect(await answersOf(service, session)).toEqual({ day: '2024-05-01' });
  });

  it('a prefilled time that nobody touches comes back as it was, and a changed one keeps its seconds', async () => {
    const fields = ['kept', 'changed'].map((id) => ({ id, type: 'datetime' }));
    const at = '2030-06-01T10:20:30.25+05:30';
    const session = await givenSession(service, { fields, session: { prefill: { kept: at, changed: at } } });
    const page = await browser.open(`/f/${session.id}`, { timezoneId: 'Europe/Berlin' });

    expect(await page.inputValue('[name=kept]')).toBe('2030-06-01T06:50:30');
    await page.fill('[name=changed]', '2030-06-02T06:50:30');
    await submit(page);

    expect(await answersOf(service, session)).toEqual({ kept: at, changed: '2030-06-02T06:50:30+02:00' });
  });

  it('a time that the clocks skip is moved as the browser moves it, and the review shows it', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'at', type: 'datetime' }],
      settings: { review: true },
    });
    const page = await browser.open(`/f/${session.id}`, { timezoneId: 'Europe/Berlin' });
    await page.fill('[name=at]', '2026-03-29T02:30');
    await submit(page);
    await page.waitForSelector('dl.review');

    expect(await page.textContent('dl.review dd')).toMatch(/March 29, 2026 at 3:30\sAM/);
    await submit(page);
    expect(await answersOf(service, session)).toEqual({ at: '2026-03-29T03:30+02:00' });
  });

  it.each([
    ['Asia/Kathmandu', 'en', /^July 1, 2026 at 12:30\sAM GMT\+5:45$/],
    ['America/New_York', 'de', /^1\. Juli 2026 um 00:30 GMT-4$/],
  ])(
    'the review and the copy of the answers show a time in the zone of %s, and name it',
    async (timezoneId, locale, text) => {
      const fields = [{ id: 'at', type: 'datetime' }];
      const { form_id } = await givenSession(service, { fields, settings: { review: true, locale } });
      const openReview = async () => {
        const page = await browser.open(`/f/${form_id}`, { timezoneId });
        await page.fill('[name=at]', '2026-07-01T00:30');
        await submit(page);
        await page.waitForSelector('dl.review');
        return page;
      };
      const [sent, refused] = [await openReview(), await openReview()];
      expect(await sent.textContent('dl.review dd')).toMatch(text);

      await submit(sent);
      await sent.waitForSelector('.copy');
      await service.post(`/v1/forms/${form_id}/archive`);
      await submit(refused);
      await refused.waitForSelector('.copy');

      expect(await sent.textContent('.copy dd')).toMatch(text);
      expect(await refused.textContent('.copy dd')).toMatch(text);
    },
  );

  it('without script the copy of the answers has a time in UTC, and says so', async () => {
    const session = await givenSession(service, { fields: [{ id: 'at', type: 'datetime' }] });
    const page = await browser.open(`/f/${session.id}`, {
      javaScriptEnabled: false,
      timezoneId: 'Asia/Kathmandu',
    });
    await page.fill('[name=at]', '2026-07-01T00:30');
    await submit(page);

    expect(await page.textContent('.copy dd')).toMatch(/^July 1, 2026 at 12:30\sAM UTC$/);
  });

  it('conditions see telephone numbers and addresses as they are stored', async () => {
    const when = (field: string, value: string) => ({ field, op: 'eq', value });
    const session = await givenSession(service, {
      fields: [
        { id: 'phone', type: 'phone' },
        { id: 'email', type: 'email' },
        { id: 'site', type: 'url' },
        { id: 'note', type: 'text' },
        { id: 'a', type: 'text', visibleWhen: when('phone', '030 12-3;ext=4') },
        { id: 'b', type: 'text', visibleWhen: when('email', 'a@xn--mnchen-3ya.de') },
        { id: 'c', type: 'text', visibleWhen: when('site', 'https://xn--mnchen-3ya.de') },
        { id: 'd', type: 'text', visibleWhen: { field: 'note', op: 'empty' } },
      ],
    });
    const page = await browser.open(`/f/${session.id}`);
    await page.fill('[name=phone]', '\u202a030\u00a012\u20113 ext. 4');
    await page.fill('[name=email]', 'a@münchen.de ');
    await page.fill('[name=site]', 'münchen.de');
    await page.fill('[name=note]', '\u200b');
    for (const id of ['a', 'b', 'c', 'd']) await page.fill(`[name=${id}]`, id);
    await submit(page);

    expect(await answersOf(service, session)).toEqual({
      phone: '030 12-3;ext=4',
      email: 'a@xn--mnchen-3ya.de',
      site: 'https://xn--mnchen-3ya.de',
      a: 'a',
      b: 'b',
      c: 'c',
      d: 'd',
    });
  });
});
