import type { Page } from 'playwright-core';
import PostalMime from 'postal-mime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { givenSession, startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { everyType } from './every-type.ts';

describe.skipIf(noBrowser)('the pages have no accessibility problem,', () => {
  let service: TestService;
  let browser: TestBrowser;
  let page: Page;
  let clockAheadMs = 0;

  beforeAll(async () => {
    service = await startService({ now: () => Date.now() + clockAheadMs });
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  describe.each([
    ['light, from left to right', { colorScheme: 'light' }, { locale: 'en' }],
    [
      'dark, from right to left',
      { colorScheme: 'dark' },
      { locale: 'ar', theme: { accentColor: '#ffd400' } },
    ],
  ] as const)('%s:', (_name, options, settings) => {
    beforeAll(async () => {
      page = await browser.open('/health', options);
      await page.context().setExtraHTTPHeaders({ 'accept-language': settings.locale });
    });
    afterAll(() => browser.expectNoProblems());

    it('a form of every type of field, its errors, its ending, and once it is submitted', async () => {
      const session = await givenSession(service, {
        fields: everyType,
        description: 'All of them',
        settings,
      });

      await visit(`/f/${session.id}`);
      expect(await page.getAttribute('html', 'dir')).toBe(settings.locale === 'ar' ? 'rtl' : 'ltr');
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');
      await expectNone('errors');
      await page.fill('[name=name]', 'Ada');
      await page.fill('[name=notes]', 'a');
      await page.check('[name=laptop][value=true]');
      await page.check('[name=consent]');
      await page.check('[name=track][value=eng]');
      await page.check('[name=languages][value=en]');
      await page.check('[name=mood][value="7"]');
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');
      await expectNone('ending');
      await visit(`/f/${session.id}`, 409);
    });

    it('a step, and files that were uploaded or refused', async () => {
      const fields = [
        { id: 'name', type: 'text' },
        { id: 'cv', type: 'file', page: 2, maxFiles: 3, maxBytes: 100 },
      ];
      const session = await givenSession(service, { fields, settings: { ...settings, allowPartial: true } });

      await visit(`/f/${session.id}`);
      await page.click('button[value=forward]');
      await page.waitForSelector('[name=cv]');
      for (const [name, size] of [
        ['small.txt', 10],
        ['large.txt', 1000],
      ] as const) {
        await page.setInputFiles('[type=file]', {
          name,
          mimeType: 'text/plain',
          buffer: Buffer.alloc(size, 'a'),
        });
      }
      await page.locator('.files .error').waitFor();
      await page.locator('.files button').waitFor();
      await expectNone('files');
    });

    it('sessions that are expired, closed, archived or unknown', async () => {
      const expired = await givenSession(service, { settings });
      await service.database.execute(
        `update sessions set expires_at = now() - interval '1 minute' where id = '${expired.id}'`,
      );
      const closesAt = new Date(Date.now() + 60_000).toISOString();
      const closed = await givenSession(service, { settings: { ...settings, closesAt } });
      const archived = await givenSession(service, { settings });
      await service.post(`/v1/forms/${archived.form_id}/archive`);

      clockAheadMs = 120_000;
      for (const { id } of [expired, closed, archived]) await visit(`/f/${id}`, 410);
      clockAheadMs = 0;
      await visit('/f/sess_unknown', 404);
    });

    it('activation, with a good link, with a wrong one, and once it is done', async () => {
      const draft = await service.givenDraft({ delivery: { type: 'webhook', url: `${service.url}/hook` } });

      await visit(`${draft.activate_url}x`, 401);
      await visit(draft.activate_url);
      await page.fill('#email', 'owner@example.com');
      await page.click('button');
      await page.waitForSelector('code');
      await expectNone('activated');
    });

    it('the links in mails, before and after their button', async () => {
      const [owner = '', other = '', next = ''] = ['owner', 'other', 'next'].map(
        (name) => `${name}-${settings.locale}@example.com`,
      );
      const draft = await service.givenDraft({ delivery: { type: 'email', to: [other] } });
      await service.post(draft.activate_url, { email: owner });
      await service.post(`/v1/forms/${draft.id}/owner`, { email: next });
      await service.post(`/api/forms/${draft.id}/submissions`, { answers: { email: 'a@example.com' } });
      const titles = new Set<string | null>();
      let started = false;
      const links = await until(async () => {
        const found = await linksInMails([owner, other, next]);
        const sorted = purposes.map((purpose) => found.filter((link) => link.includes(`/mail/${purpose}.`)));
        return sorted.every((links) => links.length > 0) && sorted.flat();
      });

      for (const link of links) {
        await visit(link);
        const title = await page.textContent('h1');
        if (titles.has(title)) continue;
        titles.add(title);
        await page.click('button');
        await page.waitForSelector('.icon.done, #done');
        await expectNone(`done: ${title}`);
        if (!(await page.isVisible('[name=start]'))) continue;
        await page.click('[name=start]');
        await page.waitForSelector('.icon.done ~ .lead:nth-last-child(1)');
        await expectNone(`started: ${title}`);
        started = true;
      }
      await visit('/mail/made-up', 401);

      expect([...titles]).toHaveLength(4);
      expect(started).toBe(true);
    });

    it('the thanks and the refusals that a static site’s form gets', async () => {
      const form = await service.givenPublishedForm({ settings });
      await using site = await startSite(
        () => `<title>Shop</title><form method="post" action="${service.url}/api/forms/${form.id}/submissions">
        <input name="email"><button>Send</button></form>`,
      );

      await page.goto(site.origin);
      await page.fill('[name=email]', 'not an address');
      await page.click('button');
      await page.waitForSelector('.summary');
      expect(await page.getAttribute('html', 'lang')).toBe(settings.locale);
      expect(await page.inputValue('[name=email]')).toBe('not an address');
      expect(await page.getAttribute('[name=email]', 'aria-invalid')).toBe('true');
      expect(await page.isVisible('[id="email.error"]')).toBe(true);
      expect(await page.getAttribute('main p > a', 'href')).toBe(`${site.origin}/`);
      await expectNone('refused');
      await page.fill('[name=email]', 'a@example.com');
      await page.click('button[value=forward]');
      await page.waitForSelector('h1.done');
      await expectNone('thanks');
    });

    async function visit(path: string, status = 200): Promise<void> {
      const response = await page.goto(new URL(path, service.url).href);
      expect([path, response?.status()]).toEqual([path, status]);
      await expectNone(path);
    }

    async function expectNone(state: string): Promise<void> {
      expect({ [state]: await browser.audit(page) }).toEqual({ [state]: [] });
    }

    async function linksInMails(addresses: string[]): Promise<string[]> {
      const mails = await Promise.all((await service.mails()).map((mail) => PostalMime.parse(mail)));
      const texts = mails.flatMap(({ to, text = '' }) =>
        to?.some(({ address = '' }) => addresses.includes(address)) ? [text] : [],
      );
      return texts.flatMap((text) => text.match(/http:\S+\/mail\/[\w.~-]+/g) ?? []);
    }
  });
});

/** What the links in mails are for, in the order in which they are followed: the address that is replaced first. */
const purposes = ['confirm-owner', 'confirm-recipient', 'change-owner', 'stop'];
