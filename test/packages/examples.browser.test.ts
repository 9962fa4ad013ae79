import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type InstalledPackage, installPackage } from './installed.ts';

const fields = [
  { id: 'email', type: 'email', label: 'Email', required: true },
  { id: 'guests', type: 'number', label: 'Guests' },
  { id: 'code', type: 'text', label: 'Code', pattern: '[A-Z]{3}', patternMessage: 'Three capital letters' },
  { id: 'plan', type: 'select', label: 'Plan', options: [{ label: 'Pro', value: 'pro' }], page: 2 },
  {
    id: 'why',
    type: 'text',
    label: 'Why Pro?',
    required: true,
    page: 2,
    visibleWhen: { field: 'plan', op: 'eq', value: 'pro' },
  },
];

describe.skipIf(noBrowser)('a page of another origin, with the package from its archive', () => {
  const opened = new AsyncDisposableStack();
  let installed: InstalledPackage;
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    installed = opened.use(await installPackage({ react: true }));
    service = opened.use(await startService());
    browser = opened.use(await startBrowser(service));
  }, 120_000);
  afterAll(() => opened.disposeAsync());

  it.each([
    ['examples/browser', 'main.ts'],
    ['examples/react', 'main.tsx'],
  ])('%s shows a form step by step, says what is wrong, keeps a draft, and submits', async (folder, main) => {
    await installed.copy(folder);
    await using site = await serve(installed.folder, await bundle(join(installed.folder, main)));
    const settings = { allowedOrigins: [site.origin], successMessage: 'See you!', locale: 'en' };
    const { id } = await service.givenPublishedForm({ fields, settings });
    const before = await service.countSubmissions();
    const page = await browser.open(`${site.origin}/?form=${id}&service=${encodeURIComponent(service.url)}`);
    const says = (text: string) =>
      until(async () => (await page.locator('body').textContent())?.includes(text));

    await page.getByLabel('Email').fill('ada');
    await page.getByRole('button', { name: 'Continue' }).click();
    await says('Enter an email address');
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByLabel('Guests').pressSequentially('1.5');
    expect(await page.getByLabel('Guests').inputValue()).toBe('1.5');
    await page.getByLabel('Code').fill('abc');
    await page.getByRole('button', { name: 'Continue' }).click();
    // The service alone knows patterns.
    await says('Three capital letters');
    await page.getByLabel('Code').fill('ABC');
    await page.reload();
    expect(await page.getByLabel('Code').inputValue()).toBe('ABC');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('Plan').selectOption('pro');
    await page.getByLabel('Why Pro?').fill('Because');
    expect(await service.countSubmissions()).toBe(before);
    await page.getByRole('button', { name: 'Send' }).click();
    await says('See you! sub_');

    const [stored] = (await service.get(`/v1/forms/${id}/submissions`)).json.submissions;
    expect(stored.answers).toEqual({
      email: 'ada@example.com',
      guests: 1.5,
      code: 'ABC',
      plan: 'pro',
      why: 'Because',
    });
    expect(stored.source).toBe('website');
    await browser.expectNoProblems();
  });

  it('the README’s lines read a form, submit and name what is refused', async () => {
    const { id } = await service.givenPublishedForm();
    const readme = await readFile(join(import.meta.dirname, '../../packages/client/README.md'), 'utf8');
    const lines = /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
    const script = lines.replace('http://localhost:8080', service.url).replace('formId', JSON.stringify(id));
    const path = await installed.write('readme.js', script);
    await using site = await serve(installed.folder, await bundle(path));

    const page = await browser.open(`${site.origin}/readme`);
    const said: string[] = [];
    page.on('console', (message) => said.push(message.text()));
    await page.reload();
    await until(() => said.some((line) => line.startsWith('sub_')));

    expect(said.slice(0, 2)).toEqual(['email: Email', 'message: Message']);
    await browser.expectNoProblems();
  });
});

async function bundle(input: string): Promise<string> {
  const define = { 'process.env.NODE_ENV': '"production"' };
  const built = await rolldown({ input, platform: 'browser', transform: { define }, logLevel: 'silent' });
  const { output } = await built.generate({ format: 'esm', codeSplitting: false });
  await built.close();
  return output[0].code;
}

/** Serves a page and its script at an origin of their own. */
async function serve(folder: string, script: string) {
  const page = await readFile(join(folder, 'index.html')).catch(() => '');
  const server = createServer(({ url = '' }, response) => {
    const isScript = url === '/main.bundle.js';
    const isReadme = url === '/readme';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
    const own = '<!doctype html><title>Page</title><script type="module" src="main.bundle.js"></script>';
    response.end(isScript ? script : isReadme ? own : page);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
