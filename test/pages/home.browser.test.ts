import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstCommand } from '../../src/pages/home.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the command that makes a first form', () => {
  it.each([['without a key'], ['with a key']])('works as it is shown, %s', async (how) => {
    const command = firstCommand(service.url, how === 'with a key' ? service.key : undefined);

    const { stdout } = await promisify(execFile)('sh', ['-c', command]);

    expect(JSON.parse(stdout)).toMatchObject({ form: { name: 'Contact', status: 'draft' } });
  });

  it('is on the page, with a place for the key where one is needed', async () => {
    await using closed = await startService({ env: { ALLOW_PUBLIC_CREATE: 'false' } });

    const open = await service.get('/', { key: null });
    const keyed = await closed.get('/', { key: null });

    expect(open.text).not.toContain('Authorization');
    expect(keyed.text).toContain('Authorization: Bearer hfs_…');
  });
});

describe.skipIf(noBrowser)('the first page and the API reference', () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await startBrowser(service);
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it('lead where they say, and have no accessibility problem', async () => {
    const page = await browser.open('/', { colorScheme: 'dark', viewport: { width: 360, height: 740 } });
    const home = await browser.audit(page);
    const links = await page.locator('.places a').evaluateAll((all) => all.map((one) => String(one)));
    const statuses = await Promise.all(links.map(async (link) => (await fetch(link)).status));
    await page.emulateMedia({ colorScheme: 'light' });
    await page.click('text=API reference');
    await page.waitForSelector('.opblock-summary');
    const docs = await browser.audit(page);

    expect(statuses).toEqual(links.map(() => 200));
    expect([home, docs]).toEqual([[], []]);
    await browser.expectNoProblems();
  });

  it('try a call out, and load nothing from elsewhere', async () => {
    const page = await browser.open('/health');
    const hosts = new Set<string>();
    page.on('request', (request) => {
      if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).host);
    });

    await page.goto(`${service.url}/docs/api#/Forms/createForm`);
    await page.click('text=Try it out');
    await page.click('.execute');
    await page.locator('.live-responses-table .response-col_status', { hasText: '201' }).waitFor();
    const command = await page.textContent('.curl-command .curl');

    expect(command).toContain(`${service.url}/api/forms/create`);
    expect([...hosts]).toEqual([new URL(service.url).host]);
    await browser.expectNoProblems();
  });

  it('leads to the guide of the routes without script', async () => {
    const page = await browser.open('/docs/api', { javaScriptEnabled: false });

    await page.click('noscript a');

    await expect.poll(() => page.url()).toBe(`${service.url}/docs/rest`);
  });
});

it.each(['/assets/0123456789abcdef/libraries/swagger-ui.css', '/assets/libraries/index.html', '/docs/x'])(
  'answers %s with 404',
  async (path) => {
    expect((await service.get(path, { key: null })).status).toBe(404);
  },
);
