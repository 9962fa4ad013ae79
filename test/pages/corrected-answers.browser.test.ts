import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { newCorrection } from '../../src/store/mail/mailed-links.ts';
import { languages } from '../../src/text/words.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { secretKey } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';
import { everyType, keystrokes } from './every-type.ts';

describe.skipIf(noBrowser)('a response that is corrected', () => {
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

  it('keeps every answer that the person leaves, of every type', async () => {
    const form = await givenForm({ settings: { allowCorrection: true, review: true } });
    const page = await browser.open(`/f/${form.id}`);
    for (const [selector, keys] of keystrokes) {
      await page.focus(selector);
      for (const key of keys) await page.keyboard.press(key);
    }
    await page.setInputFiles('[name=cv]', {
      name: 'cv.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('CV'),
    });
    await page.waitForSelector('input[type=hidden][name=cv], [name="_remove"], .files li');
    await send();
    const before = await latest(form.id);
    expect(Object.keys(before.answers).length).toBeGreaterThan(20);

    await page.click('text=Correct your response');
    await page.waitForSelector('.notice');
    await page.fill('[name=name]', 'Grace');
    await send();
    const after = await latest(form.id);

    expect(after.replaces).toBe(before.id);
    expect(after.answers).toEqual({ ...before.answers, name: 'Grace' });
    expect((await service.get(`/v1/forms/${form.id}/submissions?total=true`)).json.total).toBe(1);

    async function send() {
      await page.click('button[value=forward]');
      await page.waitForSelector('.review');
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');
    }
  });

  it.each([
    ['with script, light', { colorScheme: 'light' }, 'en'],
    ['with script, dark and from right to left', { colorScheme: 'dark' }, 'ar'],
    ['without script', { javaScriptEnabled: false }, 'en'],
  ] as const)('has pages without an accessibility problem, in steps, %s', async (_name, options, locale) => {
    const fields = [
      { id: 'name', type: 'text' },
      { id: 'note', type: 'textarea', page: 2 },
    ];
    const form = await givenForm({ fields, settings: { allowCorrection: true, allowPartial: true, locale } });
    const page = await browser.open(`/f/${form.id}`, { ...options, isNew: true });
    const expectNone = async () => {
      if (!('javaScriptEnabled' in options)) expect(await browser.audit(page)).toEqual([]);
    };
    const answer = async (name: string, note: string) => {
      await page.fill('[name=name]', name);
      await page.click('button[value=forward]');
      await page.fill('[name=note]', note);
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');
    };
    await answer('Ada', 'First');
    await expectNone();
    await page.click('a[href*="f/sub_"]');
    await page.waitForSelector('.notice');
    expect(await page.inputValue('[name=name]')).toBe('Ada');
    await expectNone();
    await answer('Ada', 'Second');
    const corrected = await latest(form.id);
    expect(corrected.answers).toEqual({ name: 'Ada', note: 'Second' });

    // As from the receipt, whose button is pressed in another browser.
    const { database } = service;
    const token = await newCorrection({ database, secretKey, now: Date.now }, form.id, corrected.id);
    const other = await browser.open(`/mail/${token}`, { ...options, isNew: true });
    if (!('javaScriptEnabled' in options)) expect(await browser.audit(other)).toEqual([]);
    await other.click('form button');
    await other.waitForSelector('.notice');
    expect(await other.inputValue('[name=name]')).toBe('Ada');
    await page.click('a[href*="f/sub_"]');
    await page.waitForSelector('.notice');
    await answer('Ada', 'Third');
    // What the other page sends late is not stored.
    await other.click('button[value=forward]');
    await other.waitForSelector(`h1:has-text("${languages[locale].page.submittedTitle}")`);
    expect((await latest(form.id)).answers.note).toBe('Third');
  });

  async function latest(formId: string) {
    const { json } = await service.get(`/v1/forms/${formId}/submissions`);
    return json.submissions[0];
  }

  function givenForm(more: object) {
    return service.givenPublishedForm({ name: 'Survey', fields: everyType, ...more });
  }
});
