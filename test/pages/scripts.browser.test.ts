import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { givenSignInLink } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';
import { everyType } from './every-type.ts';

/** Bytes of script that a page loads, before compression. */
const MOST = 40_000;

describe.skipIf(noBrowser)('the script of a page', () => {
  let service: TestService;
  let browser: TestBrowser;
  let page: Page;
  let scripts: { path: string; bytes: Promise<number> }[];

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  /** Loads a page with an empty cache. */
  async function load(path: string): Promise<void> {
    page = await browser.open('/health', { isNew: true });
    scripts = [];
    page.on('response', (response) => {
      if (response.request().resourceType() !== 'script') return;
      const bytes = response.body().then(({ length }) => length);
      scripts.push({ path: new URL(response.url()).pathname, bytes });
    });
    await page.goto(new URL(path, service.url).href, { waitUntil: 'networkidle' });
  }

  async function expectOne(): Promise<void> {
    const sizes = await Promise.all(scripts.map(({ bytes }) => bytes));
    expect(scripts.map(({ path }) => path)).toHaveLength(1);
    expect(sizes[0]).toBeLessThanOrEqual(MOST);
    expect(sizes[0]).toBeGreaterThan(0);
    await browser.expectNoProblems();
  }

  it('of a form with fields of every type but signatures is one file', async () => {
    const fields = everyType.filter(({ type }) => type !== 'signature');
    await load(`/f/${(await givenSession(service, { fields })).id}`);
    await expectOne();
  });

  it('of a form that asks for a signature loads the library that draws, and nothing else', async () => {
    const { id } = await givenSession(service, { fields: [{ id: 'name', type: 'signature' }] });

    await load(`/f/${id}`);
    await page.waitForSelector('canvas[width]');

    expect(scripts.map(({ path }) => path.replace(/^.assets.[0-9a-f]+/, ''))).toEqual([
      '/page.js',
      '/libraries/signature_pad.js',
    ]);
    await browser.expectNoProblems();
  });

  it('of an owner’s pages is one file', async () => {
    const form = await service.givenPublishedForm();
    await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [form.id]);
    await load(`/owner/sign-in/${await givenSignInLink(service.database, 'owner@example.com')}`);
    await page.click('main button');
    await page.waitForURL('**/owner');
    for (const path of ['', '/share', '/settings'])
      await page.goto(`${service.url}/owner/forms/${form.id}${path}`, { waitUntil: 'networkidle' });

    scripts = scripts.filter(
      ({ path }, index) => scripts.findIndex((other) => other.path === path) === index,
    );
    await expectOne();
  });

  it.each(['/', '/new'])('of %s is one file', async (path) => {
    await load(path);
    await expectOne();
  });

  it('that sites load is one file, which frames the form', async () => {
    await load('/embed.js');
    const text = await (await fetch(`${service.url}/embed.js`)).text();

    expect(text.length).toBeLessThan(5_000);
    expect(text).not.toMatch(/\bimport\b|\bexport\b/);
  });
});
