import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { isMatrixFull } from '../support/covering.ts';
import { startService, type TestService } from '../support/server.ts';

/** What no instance shows: how to run it, and what it does not fulfil. */
const unserved = ['asvs', 'operations', 'threat-model'];

const documents = readdirSync(join(import.meta.dirname, '../../docs'))
  .filter((file) => file.endsWith('.md'))
  .map((file) => file.replace('.md', ''));

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the guides', () => {
  it('are all documents but those for who runs the service, and the API reference', async () => {
    const index = await get('/docs');
    const listed = [...index.matchAll(/<li><a href="[^"]*docs\/([\w-]+)">/g)].map(([, name]) => name);
    const statuses = await Promise.all(
      unserved.flatMap((name) => [name, `${name}.md`]).map((name) => status(`/docs/${name}`)),
    );

    const expected = documents.filter((name) => !unserved.includes(name)).concat('api', 'quick-start');
    expect(new Set(listed)).toEqual(new Set(expected));
    expect(new Set(statuses)).toEqual(new Set([404]));
  });

  it('need no script, and link to pages, headings and pictures that are there', async () => {
    const pages = new Map<string, string>();
    for (const path of await guidePaths()) pages.set(path, await get(path));
    const broken: string[] = [];
    let followed = 0;
    for (const [path, text] of pages) {
      const links = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = '']) => link);
      for (const link of links.filter((each) => !/^(https:|mailto:|data:)/.test(each))) {
        const { pathname, hash, origin, href } = new URL(link, service.url + path);
        if (origin !== service.url) continue;
        followed += 1;
        const target = pages.get(pathname);
        const leads =
          target === undefined
            ? (await status(href)) === 200
            : hash === '' || target.includes(` id="${hash.slice(1)}"`);
        if (!leads) broken.push(`${path}: ${link}`);
      }
    }

    expect(followed).toBeGreaterThan(200);
    expect(broken).toEqual([]);
    expect([...pages].filter(([, text]) => text.includes('<script')).map(([path]) => path)).toEqual([]);
  });

  it('have commands for this service, no comments for tests, and headings that differ', async () => {
    for (const path of await guidePaths()) {
      const text = await get(path);
      const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

      expect([path, text.includes('localhost:8080'), text.includes('<!--')]).toEqual([path, false, false]);
      expect([path, ids]).toEqual([path, [...new Set(ids)]]);
    }
    const [, baseUrl] = /\[MCP\]\((.*)\/mcp\)/.exec(await get('/llms.txt')) ?? [];
    expect(await get('/docs/quick-start')).toContain(`URL=${baseUrl}`);
  });

  it('are listed in /llms.txt as Markdown, whose links lead to Markdown', async () => {
    const links = [...(await get('/llms.txt')).matchAll(/\]\((http[^)]*\/docs\/[^)]*)\)/g)].map(
      ([, link = '']) => link,
    );
    const { headers } = await fetch(new URL(new URL(links[1] ?? '').pathname, service.url));
    const forms = await get('/docs/forms.md');
    const inner = [...forms.matchAll(/\]\(([\w-]+\.md)/g)].map(([, name]) => `/docs/${name}`);

    expect(links).toHaveLength(documents.length - unserved.length + 1);
    expect(headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(forms).toMatch(/^# Forms\n/);
    expect(inner.length).toBeGreaterThan(3);
    expect(new Set(await Promise.all([...links, ...inner].map(status)))).toEqual(new Set([200]));
  });

  it('are turned off with the API reference', async () => {
    await using bare = await startService({ env: { DOCS: 'off' } });
    const paths = [
      '/docs',
      '/docs/',
      '/docs/api',
      '/docs/forms',
      '/docs/forms.md',
      '/docs/screenshots/form.png',
    ];
    const replies = await Promise.all(paths.map((path) => fetch(bare.url + path)));
    const forModels = await (await fetch(`${bare.url}/llms.txt`)).text();

    expect(replies.map((reply) => reply.status)).toEqual(paths.map(() => 404));
    expect(forModels).not.toContain('/docs');
  });

  it.each(['/docs/forms/', '/docs/nothing', '/docs/screenshots/..%2fforms.md', '/docs/screenshots/none.png'])(
    'answer %s with 404',
    async (path) => {
      expect(await status(path)).toBe(404);
    },
  );
});

describe.skipIf(noBrowser)('the pages of guides', { timeout: 120_000 }, () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await startBrowser(service);
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it('have no accessibility problem and are no wider than the screen, narrow or wide, dark or light', async () => {
    const looks = [
      { colorScheme: 'dark', width: 320 },
      { colorScheme: 'light', width: 1280 },
    ] as const;
    const page = await browser.open('/docs');
    for (const [index, path] of ['/docs', ...(await guidePaths())].entries()) {
      await page.goto(service.url + path);
      for (const [at, { colorScheme, width }] of looks.entries()) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, width]);
        // All are of one template and style: half of them show what is wrong with a look.
        if (isMatrixFull || index % looks.length === at)
          expect([path, colorScheme, await browser.audit(page)]).toEqual([path, colorScheme, []]);
      }
    }
    await browser.expectNoProblems();
  });

  it('name the columns of a table in each row on a phone, where a cell has the whole width', async () => {
    const page = await browser.open('/docs/settings', { viewport: { width: 320, height: 700 } });
    const cell = page.locator('td:nth-child(2)').first();
    const label = "getComputedStyle(document.querySelector('td:nth-child(2)'), '::before').content";

    expect(await cell.textContent()).toBe('8080');
    expect(await page.evaluate(label)).toContain('Default');
    expect((await cell.boundingBox())?.width).toBeGreaterThan(250);
    await page.setViewportSize({ width: 1280, height: 900 });
    expect(await page.evaluate(label)).toBe('none');
  });
});

async function guidePaths(): Promise<string[]> {
  return [...(await get('/docs')).matchAll(/<li><a href="[^"]*(docs\/[\w-]+)">/g)]
    .map(([, path = '']) => `/${path}`)
    .filter((path) => path !== '/docs/api');
}

async function get(path: string): Promise<string> {
  return (await fetch(service.url + path)).text();
}

/** The status of a path, or of an address of the service. */
async function status(address: string): Promise<number> {
  const { pathname } = new URL(address, service.url);
  return (await fetch(service.url + pathname)).status;
}
