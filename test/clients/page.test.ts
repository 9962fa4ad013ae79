import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'examples/browser');

describe.skipIf(noBrowser)('the page of the examples, built and served as their README says', () => {
  const opened = new AsyncDisposableStack();
  let service: TestService;
  let browser: TestBrowser;
  let site: string;

  beforeAll(async () => {
    const env = { ...process.env, PATH: `${root}/node_modules/.bin:${process.env.PATH}` };
    await run('buf', ['generate'], { cwd: folder, env });
    await run('rolldown', ['main.ts', '--file', 'gen/main.js', '--format', 'esm'], { cwd: folder, env });
    site = opened.use(await serveFolder()).origin;
    service = opened.use(await startService());
    browser = opened.use(await startBrowser(service));
  }, 60_000);
  afterAll(() => opened.disposeAsync());

  it('checks answers as they change, lists what is refused, and submits', async () => {
    const { id } = await service.givenPublishedForm();
    const page = await browser.open(`${site}/?form=${id}&service=${encodeURIComponent(service.url)}`);
    const violations = page.locator('#violations li');
    const said = page.locator('output');

    await page.getByLabel('Email').fill('ada');
    await page.getByLabel('Email').press('Tab');
    await until(async () => (await violations.allTextContents()).join().startsWith('answers.email: '));
    await page.getByRole('button').click();
    await until(async () => (await said.textContent())?.includes('answers.email'));
    const refused = await violations.allTextContents();
    const before = await service.countSubmissions();
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByRole('button').click();
    await until(async () => (await said.textContent())?.startsWith('Thank you! sub_'));

    expect(refused).toEqual([expect.stringMatching(/^answers\.email: /)]);
    expect(before).toBe(0);
    expect(await violations.count()).toBe(0);
    expect(await service.countSubmissions()).toBe(1);
    await browser.expectNoProblems();
  });
});

/** Serves the files of the example at an origin of their own. */
async function serveFolder() {
  const page = await readFile(join(folder, 'index.html'));
  const script = await readFile(join(folder, 'gen/main.js'));
  const server = createServer(({ url = '' }, response) => {
    const isScript = url === '/gen/main.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
    response.end(isScript ? script : page);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const run = promisify(execFile);
