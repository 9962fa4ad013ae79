import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

const TERMS = 'https://example.com/terms';

describe.skipIf(noBrowser)('addresses in the texts of a form', () => {
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

  const definition = {
    name: `Form ${TERMS}`,
    description: `See ${TERMS}, (http://example.com:8080/a?b=c#d) or mailto:ada@münchen.de!`,
    fields: [
      { id: 'terms', type: 'checkbox', label: `I accept ${TERMS}`, required: true },
      {
        id: 'name',
        type: 'text',
        description: `<b>https://пример.рф/путь</b> https://a@evil.example/ https://b:8080@evil.example/ https://c:d@evil.example/ https://e\\\\@evil.example ftp://x.example example.com ada@example.com javascript:alert(1)`,
      },
      { id: 'way', type: 'radio', options: [{ label: `By ${TERMS}`, value: 'a' }] },
      { id: 'about', type: 'statement', label: `About ${TERMS}`, description: `More: ${TERMS}.` },
    ],
    settings: { successMessage: `Read ${TERMS}`, submitLabel: `Send ${TERMS}` },
  };

  it('are links that lead where they say, to a new window, and tick no box', async () => {
    const session = await givenSession(service, definition);
    const page = await browser.open(`/f/${session.id}`);
    const linksIn = (selector: string) =>
      page
        .locator(`${selector} a`)
        .evaluateAll((links) => links.map((link) => [link.textContent, link.getAttribute('href')]));
    const same = (...addresses: string[]) => addresses.map((address) => [address, address]);

    expect(await linksIn('.lead')).toEqual(
      same(TERMS, 'http://example.com:8080/a?b=c#d', 'mailto:ada@xn--mnchen-3ya.de'),
    );
    expect(await linksIn('[data-field=terms]')).toEqual(same(TERMS));
    expect(await linksIn('[data-field=name]')).toEqual(same('https://xn--e1afmkfd.xn--p1ai/путь'));
    expect(await linksIn('[data-field=about]')).toEqual(same(TERMS));
    for (const selector of ['h1', 'h2', '[data-field=way]', 'button'])
      expect(await linksIn(selector)).toEqual([]);
    for (const link of await page.locator('form a, .lead a').all())
      expect([await link.getAttribute('rel'), await link.getAttribute('target')]).toEqual([
        'noopener noreferrer',
        '_blank',
      ]);
    expect(await browser.audit(page)).toEqual([]);

    await page.evaluate(
      "document.querySelector('[data-field=terms] a').addEventListener('click', (event) => event.preventDefault())",
    );
    await page.click('[data-field=terms] a');
    expect(await page.isChecked('[name=terms]')).toBe(false);
    await page.click('[data-field=terms] .choice span', { position: { x: 2, y: 5 } });
    expect(await page.isChecked('[name=terms]')).toBe(true);
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');
    expect(await linksIn('.lead')).toEqual(same(TERMS));
    expect(await answersOf(service, session)).toEqual({ terms: true });
    await browser.expectNoProblems();
  });

  it('are texts in forms made without a key', async () => {
    const { id, activate_url } = await service.givenDraft(definition, { key: null });
    await service.post(activate_url, { email: 'ada@example.com' }, { key: null });
    const page = await browser.open(`/f/${id}`);

    expect(await page.textContent('.lead')).toContain(TERMS);
    expect(await page.locator('main a').count()).toBe(0);
  });
});
