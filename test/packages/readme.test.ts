import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namedTexts } from '../../packages/client/name.ts';
import { signWebhook } from '../../src/domain/delivery/signature.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { fencedBlocks } from '../support/documents.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type InstalledPackage, installPackage } from './installed.ts';
import { bundle, serveScript } from './site.ts';

const readme = readFileSync(join(import.meta.dirname, '../../packages/client/README.md'), 'utf8');
const blocks = fencedBlocks(readme).map(({ language, text }) => ({ language, text }));

describe('the lines of the package’s README', () => {
  const opened = new AsyncDisposableStack();
  let installed: InstalledPackage;
  let service: TestService;
  let formId: string;
  let browser: TestBrowser;

  beforeAll(async () => {
    installed = opened.use(await installPackage());
    service = opened.use(await startService());
    ({ id: formId } = await service.givenPublishedForm());
    if (!noBrowser) browser = opened.use(await startBrowser(service));
  }, 120_000);
  afterAll(() => opened.disposeAsync());

  /** The lines of a block for this service and form. */
  function linesOf(index: number): string {
    const { text = '' } = blocks[index] ?? {};
    return text
      .replaceAll('http://localhost:8080', service.url)
      .replaceAll(/(?<!')\bformId\b/g, JSON.stringify(formId));
  }

  const env = () => ({ ...process.env, KEY: service.key, WEBHOOK_SECRET: 'my own secret' });

  async function run(name: string, text: string): Promise<string> {
    const path = await installed.write(name, text);
    return (await promisify(execFile)(process.execPath, [path], { env: env() })).stdout;
  }

  it('are these four blocks', () => {
    expect(blocks.map(({ language }) => language)).toEqual(['js', 'jsx', 'js', 'js']);
  });

  it('read a form, submit it, and name what is refused, in Node', async () => {
    const said = await run('form.mjs', linesOf(0));
    const refused = await run('refused.mjs', linesOf(0).replace('ada@example.com', 'ada'));

    expect(said).toMatch(/^email: Email\nmessage: Message\nsub_\w+\n$/);
    expect(refused).toMatch(/\nEmail: .*email address.*\n$/);
  });

  it('ask a person, and wait for the answer, in Node', async () => {
    const text = `${linesOf(2)}console.log(JSON.stringify(submission.answers));`;
    const script = spawn(process.execPath, [await installed.write('wait.mjs', text)], { env: env() });
    const said: string[] = [];
    createInterface(script.stdout).on('line', (line) => said.push(line));
    const url = await until(() => said[0], 30_000);

    const sessionId = url.slice(url.lastIndexOf('/') + 1);
    await service.post(`/v1/sessions/${sessionId}/submit`, { answers: { email: 'bob@example.com' } });
    await once(script, 'close');

    expect(new URL(url).pathname).toBe(`/f/${sessionId}`);
    expect(said.slice(1)).toEqual(['{"email":"bob@example.com"}']);
  });

  it('verify a webhook, in Node', async () => {
    const body = JSON.stringify({ id: 'evt_1', event: 'submission.created', data: { answers: {} } });
    const headers = signWebhook({ id: 'evt_1', body, at: Date.now(), secret: 'my own secret' });
    const received = `const { body, request } = ${JSON.stringify({ body, request: { headers } })};\n`;

    const said = await run(
      'webhook.mjs',
      `${received}${linesOf(3)}console.log(event, JSON.stringify(data));`,
    );

    expect(said).toBe('submission.created {"answers":{}}\n');
  });

  describe.skipIf(noBrowser)('in Chromium, at another origin', () => {
    it('read a form, submit it, and name what is refused', async () => {
      await using site = await serveScript(await bundle(await installed.write('form.js', linesOf(0))));

      const page = await browser.open('/health');
      const said: string[] = [];
      page.on('console', (message) => said.push(message.text()));
      await page.goto(`${site.origin}/`);
      await until(() => said.some((line) => line.startsWith('sub_')));

      expect(said.slice(0, 2)).toEqual(['email: Email', 'message: Message']);
      await browser.expectNoProblems();
    });

    it('render a form by React, and submit it', async () => {
      const script = `import { createRoot } from 'react-dom/client';
        import { readForm } from 'PACKAGE/form';
        ${linesOf(1)}
        const service = ${JSON.stringify(service.url)};
        const root = document.body.appendChild(document.createElement('main'));
        createRoot(root).render(<Contact definition={await readForm(service, ${JSON.stringify(formId)})} />);`;
      await using site = await serveScript(await bundle(await installed.write('react.jsx', script)));
      const before = await service.countSubmissions();
      const page = await browser.open(`${site.origin}/`);

      await page.getByLabel('Email').fill('ada');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText('email address').waitFor();
      await page.getByLabel('Email').fill('eve@example.com');
      await page.getByRole('button', { name: 'Send' }).click();

      await until(async () => (await service.countSubmissions()) === before + 1);
      const [stored] = (await service.get(`/v1/forms/${formId}/submissions`)).json.submissions;
      expect(stored.answers).toEqual({ email: 'eve@example.com' });
      await browser.expectNoProblems();
    });
  });
});

describe('the name of the package', () => {
  const { name } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../packages/client/package.json'), 'utf8'),
  );

  it('is the same in its README and the examples: after a change, run packages/client/name.ts', () => {
    const different = [...namedTexts(name)].filter(([, { before, after }]) => before !== after);

    expect(different.map(([path]) => path)).toEqual([]);
  });

  it('is changed everywhere by that', () => {
    const texts = [...namedTexts('@example/forms')];

    expect(texts.map(([path]) => path)).toEqual(
      expect.arrayContaining([
        'packages/client/README.md',
        'examples/browser/main.ts',
        'examples/react/main.tsx',
      ]),
    );
    for (const [path, { before, after }] of texts) {
      expect(after, path).not.toBe(before);
      expect(after, path).not.toContain(name);
      expect(after, path).toMatch(/from '@example\/forms\/form'|\.\/example-forms-\*\.tgz/);
    }
  });
});
