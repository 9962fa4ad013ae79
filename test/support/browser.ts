import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { chromiumPath } from './chromium.ts';
import type { TestService } from './server.ts';

/** A browser for the pages of a service. What goes wrong on any of its pages is gathered in `problems`. */
export async function startBrowser(service: Pick<TestService, 'url'>): Promise<TestBrowser> {
  await runningChromium();
  const used: Page[] = [];
  const problems: string[] = [];
  const restAll = async () => {
    await Promise.all(used.splice(0).map(rest));
  };
  return {
    problems,
    async open(path, { isNew = false, ...options } = {}) {
      const page = (isNew ? undefined : takeResting(options)) ?? (await openPage(options));
      used.push(page);
      problemsOf.set(page, problems);
      await page.goto(new URL(path, service.url).href);
      return page;
    },
    async expectNoProblems() {
      await restAll();
      expect(problems.splice(0)).toEqual([]);
    },
    async audit(page) {
      // Compiles it once for all documents of a page, which `evaluate` does not.
      const session = await page.context().newCDPSession(page);
      await session.send('Runtime.evaluate', { expression: await axe });
      await session.detach();
      const found = await page.evaluate(`axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        rules: { 'target-size': { enabled: true } },
        resultTypes: ['violations'],
        // Loads style sheets and media anew, for rules of neither of these kinds.
        preload: false,
      }).then(({ violations }) => violations)`);
      return (found as { id: string; nodes: { html: string }[] }[]).flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.html}`),
      );
    },
    [Symbol.asyncDispose]: restAll,
  };
}

/** A page in a browser context of its own. */
async function openPage(options: BrowserContextOptions): Promise<Page> {
  const browser = await runningChromium();
  const context = await browser.newContext({ locale: 'en-US', ...options });
  await context.addInitScript(`addEventListener('securitypolicyviolation', (event) =>
    console.error('Blocked: ' + event.violatedDirective + ' ' + event.blockedURI))`);
  const page = await context.newPage();
  optionsOf.set(page, options);
  page.setDefaultTimeout(30_000);
  awaitLoads(page);
  const gather = (problem: string) => problemsOf.get(page)?.push(problem);
  page.on('pageerror', (error) => gather(String(error)));
  page.on('dialog', (dialog) => {
    gather(`Dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    // That a page came with the status of an error is what many tests are about; and some have no TLS.
    const isMeant = /status of 4\d\d|Opener-Policy header has been ignored/.test(message.text());
    if (message.type() === 'error' && !isMeant) gather(message.text());
  });
  return page;
}

/**
 * Leaves a page to the next test that opens one with the same options, without anything that is stored: a new one costs
 * Chromium more than most tests do with it.
 */
async function rest(page: Page): Promise<void> {
  problemsOf.delete(page);
  const context = page.context();
  const options = optionsOf.get(page) ?? {};
  try {
    for (const other of context.pages()) if (other !== page) await other.close();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.evaluate('sessionStorage.clear(), localStorage.clear()').catch(() => undefined);
    await page.goto('about:blank');
    await context.clearCookies();
    await context.setOffline(false);
    await context.setExtraHTTPHeaders({});
    const { colorScheme = 'light', forcedColors = 'none', reducedMotion = 'no-preference' } = options;
    await page.emulateMedia({ colorScheme, forcedColors, reducedMotion });
    if (options.viewport !== null) await page.setViewportSize(options.viewport ?? VIEWPORT);
    resting.push(page);
  } catch {
    // A test has closed it, or left it as it can't be used.
    await context.close();
  }
  if (resting.length > MOST_RESTING) await resting.shift()?.context().close();
}

function takeResting(options: BrowserContextOptions): Page | undefined {
  const isLike = (page: Page) => JSON.stringify(optionsOf.get(page)) === JSON.stringify(options);
  const index = resting.findIndex((page) => isLike(page) && !page.isClosed());
  return index < 0 ? undefined : resting.splice(index, 1)[0];
}

/** Pages that no test uses, the one used last at the end. */
const resting: Page[] = [];

/** Each has a process. */
const MOST_RESTING = 4;

const optionsOf = new WeakMap<Page, BrowserContextOptions>();
const problemsOf = new WeakMap<Page, string[]>();

/** What Playwright gives a page without another one. */
const VIEWPORT = { width: 1280, height: 720 };

/**
 * Lets a click that leads to another page last until that is loaded, or fetched by the script. By itself it ends as soon
 * as the first bytes are there: then texts can be cut off, styles be missing, and scripts not have run, and what is
 * waited for next may still be that of the page before.
 */
function awaitLoads(page: Page): void {
  // Clicks of the page and of locators all go through it.
  const frame = page.mainFrame();
  const click = frame.click.bind(frame);
  frame.click = async (...given) => {
    await click(...given);
    await frame.waitForLoadState();
    await frame.waitForSelector('.actions button[aria-disabled=true]', { state: 'detached' });
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
export async function startSite(html: (origin: string) => string | Buffer, charset = 'utf-8'): Promise<Site> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', `text/html; charset=${charset}`);
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
  /**
   * Opens a page in a browser context of its own, with nothing stored, and with nothing cached if it `isNew`. Its clicks
   * wait for what they load.
   */
  open: (path: string, options?: BrowserContextOptions & { isNew?: boolean }) => Promise<Page>;
  /** Leaves all pages, and fails the test if there were problems on any. */
  expectNoProblems: () => Promise<void>;
  /** What axe finds: WCAG 2.2 A and AA, and best practices. */
  audit: (page: Page) => Promise<string[]>;
};

export type Site = AsyncDisposable & { origin: string };
