import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { expect } from 'vitest';
import { chromiumPath } from './chromium.ts';
import type { TestService } from './server.ts';

/** A browser for the pages of a service. What goes wrong on any of its pages is gathered in `problems`. */
export async function startBrowser(service: Pick<TestService, 'url'>): Promise<TestBrowser> {
  const browser = await runningChromium();
  const contexts: BrowserContext[] = [];
  const problems: string[] = [];
  const closeAll = async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  };
  return {
    problems,
    async open(path, options = {}) {
      const context = await browser.newContext({ locale: 'en-US', ...options });
      contexts.push(context);
      await context.addInitScript(`addEventListener('securitypolicyviolation', (event) =>
        console.error('Blocked: ' + event.violatedDirective + ' ' + event.blockedURI))`);
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      awaitLoads(page);
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('dialog', (dialog) => {
        problems.push(`Dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on('console', (message) => {
        // That a page came with the status of an error is what many tests are about; and some have no TLS.
        const isMeant = /status of 4\d\d|Opener-Policy header has been ignored/.test(message.text());
        if (message.type() === 'error' && !isMeant) problems.push(message.text());
      });
      await page.goto(new URL(path, service.url).href);
      return page;
    },
    async expectNoProblems() {
      await closeAll();
      expect(problems.splice(0)).toEqual([]);
    },
    async audit(page) {
      await page.evaluate(await axe);
      const found = await page.evaluate(`axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        rules: { 'target-size': { enabled: true } },
        resultTypes: ['violations'],
      }).then(({ violations }) => violations)`);
      return (found as { id: string; nodes: { html: string }[] }[]).flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.html}`),
      );
    },
    [Symbol.asyncDispose]: closeAll,
  };
}

/**
 * Lets a click that leads to another page last until that is loaded. By itself it ends as soon as the first bytes are
 * there: then texts can be cut off, styles be missing, and scripts not have run.
 */
function awaitLoads(page: Page): void {
  // Clicks of the page and of locators all go through it.
  const frame = page.mainFrame();
  const click = frame.click.bind(frame);
  frame.click = async (...given) => {
    await click(...given);
    await frame.waitForLoadState();
  };
}

/**
 * Chromium takes a second to start: one does for all test files of a process, with which it ends. Names under
 * `rebound.example` lead to this machine.
 */
async function runningChromium(): Promise<Browser> {
  const browser = await launched;
  if (browser?.isConnected()) return browser;
  const args = ['--no-sandbox', '--lang=en-US', '--host-resolver-rules=MAP *.rebound.example 127.0.0.1'];
  launched = chromium.launch({ executablePath: chromiumPath, args });
  return launched;
}

let launched: Promise<Browser> | undefined;

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Serves one page at an origin of its own, as somebody else's site. */
export async function startSite(html: (origin: string) => string): Promise<Site> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(html(origin));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Publishes a form and makes a session of it; `session` is the body that makes it. */
export async function givenSession(
  service: TestService,
  { session = {}, ...definition }: { session?: object; [attribute: string]: unknown },
): Promise<{ id: string; form_id: string }> {
  const form = await service.givenPublishedForm(definition);
  const made = await service.post(`/v1/forms/${form.id}/sessions`, session);
  if (made.status !== 201) throw new Error(`No session: ${made.text}`);
  return made.json.session;
}

/** The answers that a session was submitted with. */
export async function answersOf(service: TestService, { id }: { id: string }) {
  const { session } = (await service.get(`/v1/sessions/${id}`)).json;
  const { submission } = (await service.get(`/v1/submissions/${session.submission_id}`)).json;
  return submission.answers;
}

export type TestBrowser = AsyncDisposable & {
  /** Errors of scripts, console errors, dialogs and what a policy has blocked, on any page. */
  problems: string[];
  /** Opens a page in a browser context of its own. Its clicks wait for what they load. */
  open: (path: string, options?: BrowserContextOptions) => Promise<Page>;
  /** Closes all pages, and fails the test if there were problems on any. */
  expectNoProblems: () => Promise<void>;
  /** What axe finds: WCAG 2.2 A and AA, and best practices. */
  audit: (page: Page) => Promise<string[]>;
};

export type Site = AsyncDisposable & { origin: string };
