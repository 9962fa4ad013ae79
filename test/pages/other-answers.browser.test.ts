import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('an answer beside the options', () => {
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

  it.each([
    ['with script', true, 'radio', true, false],
    ['with script, in a list', true, 'select', false, false],
    ['with script, on two steps', true, 'radio', false, true],
    ['without script', false, 'radio', false, false],
    ['without script, in a list, on two steps', false, 'select', true, true],
  ])(
    'is asked for where it was chosen and not written, %s',
    async (_name, javaScriptEnabled, type, required, steps) => {
      const options = ['Red', 'Blue'].map((label) => ({ label, value: label.toLowerCase() }));
      const session = await givenSession(service, {
        fields: [
          { id: 'colour', type, options, allowOther: true, required },
          { id: 'more', type: 'text', visibleWhen: { field: 'colour', op: 'eq', value: 'Green' } },
          { id: 'note', type: 'text', page: steps ? 2 : 1 },
        ],
      });
      const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled });
      if (type === 'radio') await page.check('[data-other]');
      else await page.selectOption('[name=colour]', { label: 'Other' });
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');

      expect(await page.textContent('.summary a')).toBe('Colour – Enter your own answer.');
      expect(await page.inputValue('[name=colour]:is(select, :checked)')).toBe('\u2060');
      if (javaScriptEnabled) {
        await page.click('.summary a');
        expect(await page.evaluate('document.activeElement.name')).toBe('colour.other');
        expect(await browser.audit(page)).toEqual([]);
      }
      expect(await page.getAttribute('[name="colour.other"]', 'aria-invalid')).toBe('true');
      await page.fill('[name="colour.other"]', 'Green');
      if (javaScriptEnabled) await page.fill('[name=more]', 'Seen');
      await page.click('button[value=forward]');
      if (!javaScriptEnabled) await page.fill('[name=more]', 'Seen');
      if (!javaScriptEnabled) await page.click('button[value=forward]');
      if (steps) await page.fill('[name=note]', 'Done');
      if (steps) await page.click('button[value=forward]');
      await page.waitForSelector('h1.done');

      expect(await answersOf(service, session)).toEqual({
        colour: 'Green',
        more: 'Seen',
        ...(steps && { note: 'Done' }),
      });
      await browser.expectNoProblems();
    },
  );
});
