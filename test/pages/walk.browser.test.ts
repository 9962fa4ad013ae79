import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Download, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { isMatrixFull } from '../support/covering.ts';
import { type ReceivedMail, startMailServer } from '../support/mail-server.ts';
import { smallerPng } from '../support/png.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const desktop = { viewport: { width: 900, height: 720 } };
const phone = { viewport: { width: 390, height: 760 }, isMobile: true, hasTouch: true };

describe.skipIf(noBrowser)('a person without a terminal', { timeout: 120_000 }, () => {
  let service: TestService;
  let browser: TestBrowser;
  let mailServer: Awaited<ReturnType<typeof startMailServer>>;
  let walks = 0;

  beforeAll(async () => {
    mailServer = await startMailServer();
    service = await startService({ env: { SMTP_URL: mailServer.url } });
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    await mailServer?.[Symbol.asyncDispose]();
  });

  // What is asserted does not depend on the device, but pictures are made of each.
  const walksOfAll = isMatrixFull || process.env.SCREENSHOTS !== undefined;
  const all = [
    ['phone', 'with script', phone],
    ['desktop', 'without script', { ...desktop, javaScriptEnabled: false }],
    ['desktop', 'with script', desktop],
    ['phone', 'without script', { ...phone, javaScriptEnabled: false }],
  ] as const;

  it.each(all.slice(0, walksOfAll ? 4 : 2))(
    'runs a form by the links in mails, on a %s, %s',
    async (device, script, options) => {
      walks += 1;
      const [owner, colleague, visitor] = [
        `olga${walks}@example.com`,
        `colin${walks}@example.com`,
        'vera@example.com',
      ];
      const see = (page: Page, name: string) =>
        shoot(page, script === 'with script' ? `${name}-${device}` : '');

      // Whoever made the form handed on its activation link.
      const { activate_url } = await service.givenDraft(application);
      const mine = await browser.open(activate_url, options);
      await see(mine, 'activation');
      await mine.fill('[name=email]', owner);
      await mine.click('main form button');
      const pageUrl = (await mine.getAttribute('.share a.button', 'href')) ?? '';
      expect(pageUrl).toMatch(/\/f\/form_\w+$/);
      await see(mine, 'activated');

      await mine.goto(linkIn(await mailTo(owner, 'confirm-owner'), 'mail/confirm-owner'));
      await mine.click('main button');
      await see(mine, 'confirmed-owner');

      await answer(pageUrl, options, { name: 'Vera Stein', email: visitor, see });

      const about = await mailTo(owner, '/owner/submissions/');
      expect(about.text).toContain('Vera Stein');
      expect(about.replyTo).toEqual([{ address: visitor, name: '' }]);
      const [fileFromMail] = await Promise.all([
        mine.waitForEvent('download'),
        mine.goto(linkIn(about, 'files')).catch(() => undefined),
      ]);
      expect(await textOf(fileFromMail)).toBe('All my work');

      await mine.click('text="Sign out"');
      await mine.goto(linkIn(about, 'owner/submissions'));
      await see(mine, 'owner-sign-in');
      expect(await mine.inputValue('[name=email]')).toBe(owner);
      await mine.click('main form button');
      await mine.goto(linkIn(await mailTo(owner, '/owner/sign-in/'), 'owner/sign-in'));
      await mine.click('main button');
      await expect.poll(() => mine.url()).toContain('/owner/submissions/');
      expect(await mine.textContent('main')).toContain('Vera Stein');
      await see(mine, 'owner-answer');

      await mine.click('text=Residency >> nth=0');
      await see(mine, 'owner-answers');
      const [csv] = await Promise.all([mine.waitForEvent('download'), mine.click('text=CSV')]);
      expect(await textOf(csv)).toContain(`Vera Stein,${visitor}`);

      await mine.click('text=Settings');
      await mine.fill('#recipient', colleague);
      await mine.click('text="Add"');
      expect(await mine.textContent('.files')).toContain('Not confirmed yet');
      await see(mine, 'owner-settings');
      const theirs = await browser.open(
        linkIn(await mailTo(colleague, 'confirm-recipient'), 'mail/confirm-recipient'),
        options,
      );
      await see(theirs, 'confirm-recipient');
      await theirs.click('main button');
      await answer(pageUrl, options, { name: 'Walter Hahn', email: visitor });
      expect((await mailTo(colleague, 'Walter Hahn')).replyTo).toEqual([{ address: visitor, name: '' }]);

      await mine.click('.tabs >> text=Insights');
      await see(mine, 'owner-charts');
      await mine.click('.tabs >> text=Responses');
      await expect.poll(() => mine.locator('tbody tr').count()).toBe(2);
      await mine.click('tbody tr:first-child a');
      expect(await mine.textContent('main')).toContain('Walter Hahn');
      await mine.click('text=Delete response');
      await see(mine, 'owner-delete');
      await mine.click('main .actions button');
      await expect.poll(() => mine.locator('tbody tr').count()).toBe(1);

      await mine.click('text=Settings');
      await mine.click('text=Close form');
      const late = await browser.open(pageUrl, options);
      expect(await late.textContent('main')).toContain('no longer');
      await see(late, 'form-closed');
      await mine.click('text=Your forms');
      expect(await mine.textContent('.forms')).toContain('Residency');
      await see(mine, 'owner-forms');
      await browser.expectNoProblems();
    },
  );

  /** Fills in the form in a browser of its own. */
  async function answer(pageUrl: string, options: BrowserContextOptions, { name, email, see }: Answer) {
    const page = await browser.open(pageUrl, options);
    await see?.(page, 'form');
    await page.click('button[value=forward]');
    await page.waitForSelector('.summary');
    await see?.(page, 'form-errors');
    await page.fill('[name=name]', name);
    await page.fill('[name=email]', email);
    await page.check('[name=team][value=sound]');
    await page.setInputFiles('[name=work]', {
      name: 'work.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('All my work'),
    });
    if (options.javaScriptEnabled !== false) await page.locator('.files button').waitFor();
    await see?.(page, 'form-filled');
    await page.click('button[value=forward]');
    await page.waitForSelector('.done');
    await see?.(page, 'form-thanks');
  }

  /** The latest mail to an address in which a text stands, once it has come. */
  async function mailTo(address: string, text: string): Promise<ReceivedMail> {
    const found = () =>
      mailServer.mails.findLast((mail) => mail.recipients.includes(address) && mail.text?.includes(text));
    await until(
      () => found() !== undefined,
      20_000,
      () => `No mail to ${address} with ${text}`,
    );
    return found() as ReceivedMail;
  }

  /** Writes a picture of a page if `SCREENSHOTS` names a folder for them. */
  async function shoot(page: Page, name: string): Promise<void> {
    const { SCREENSHOTS: folder } = process.env;
    if (folder === undefined || name === '') return;
    const fullPage = !/^(activated|owner-settings)/.test(name);
    const png = await page.screenshot({ fullPage, animations: 'disabled', caret: 'hide' });
    await writeFile(join(folder, `${name}.png`), smallerPng(png));
  }
});

function linkIn({ text = '' }: ReceivedMail, path: string): string {
  return new RegExp(`http\\S+/${path}[/.]\\S+`).exec(text)?.[0] ?? '';
}

async function textOf(download: Download): Promise<string> {
  return readFile(await download.path(), 'utf8');
}

const application = {
  name: 'Residency',
  slug: 'residency',
  description: 'Three months in our studio by the lake.',
  delivery: { type: 'email' },
  fields: [
    { id: 'name', type: 'text', label: 'Your name', required: true },
    { id: 'email', type: 'email', label: 'Email address', required: true },
    {
      id: 'team',
      type: 'radio',
      label: 'What do you do?',
      options: [
        { label: 'Sound', value: 'sound' },
        { label: 'Textile', value: 'textile' },
      ],
    },
    { id: 'work', type: 'file', label: 'Your work' },
  ],
  settings: { theme: { accentColor: '#0f766e' } },
};

type Answer = {
  name: string;
  email: string;
  see?: (page: Page, name: string) => Promise<void>;
};
