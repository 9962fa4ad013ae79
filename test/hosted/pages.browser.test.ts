import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';

const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
const installed = existsSync(CHROMIUM);
if (!installed) {
  console.warn(`\n  !! The browser tests of the hosted pages are LEFT OUT: there is no ${CHROMIUM}.\n`);
}

describe.skipIf(!installed)('the hosted pages in a browser', { timeout: 60_000 }, () => {
  let service: TestService;
  let browser: Browser;
  let axe: string;
  const problems: string[] = [];

  beforeAll(async () => {
    [service, browser, axe] = await Promise.all([
      startService(),
      chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--lang=en-US'] }),
      readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'),
    ]);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await service?.[Symbol.asyncDispose]();
  });
  afterEach(() => expect(problems.splice(0)).toEqual([]));

  it.each([
    ['with script on a desk', {}],
    ['without script on a phone', { javaScriptEnabled: false, viewport: { width: 320, height: 640 } }],
  ])('take every type of answer by keyboard alone, %s', async (_name, options) => {
    const session = await givenSession({ fields: everyType });
    const page = await open(`/f/${session.id}`, options);

    for (const [selector, keys] of keystrokes) {
      await page.focus(selector);
      for (const key of keys) await page.keyboard.press(key);
    }
    await expectWidth(page);
    await page.focus('button[value=forward]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.copy');

    const answers = await answersOf(session);
    expect(answers).toEqual({
      name: 'Ada',
      notes: 'a\nb',
      email: 'a@b.co',
      site: 'http://a.b',
      phone: '+4930123456',
      age: 7,
      laptop: true,
      consent: true,
      day: '2026-12-24',
      at: '10:30',
      call: expect.stringMatching(/^2026-12-24T10:30/),
      diet: 'vegan',
      track: 'eng',
      languages: ['en', 'de'],
    });
  });

  it('follow conditions as one answers, and go from step to step and back', async () => {
    const session = await givenSession({ fields: steps });
    const page = await open(`/f/${session.id}`);

    expect(await page.isVisible('[name=os]')).toBe(false);
    await page.check('[name=laptop][value=true]');
    expect(await page.isVisible('[name=os]')).toBe(true);
    await page.click('button[value=forward]');
    await page.waitForSelector('.summary');
    expect(await page.evaluate('document.activeElement.className')).toBe('summary');
    await page.click('.summary a');
    expect(await page.evaluate('document.activeElement.name')).toBe('os');
    await page.keyboard.type('Linux');
    await page.click('button[value=forward]');
    await page.waitForSelector('[name=consent]');
    expect(await page.textContent('#step')).toBe('Step 2 of 2');
    await page.goBack();
    await page.waitForSelector('[name=os]');
    expect(await page.inputValue('[name=os]')).toBe('Linux');
    await page.goForward();
    await page.waitForSelector('[name=consent]');
    await page.check('[name=consent]');
    await page.dblclick('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await answersOf(session)).toEqual({ laptop: true, os: 'Linux', consent: true });
    expect(await service.countSubmissions()).toBeGreaterThan(0);
    await page.goBack();
    await page.locator('h1', { hasText: 'Already submitted' }).waitFor();
  });

  it('say "Saved" once it is, and go on where it stood in another browser', async () => {
    const session = await givenSession({ fields: steps, settings: { allowPartial: true } });
    const page = await open(`/f/${session.id}`);

    await page.check('[name=laptop][value=false]');
    await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
    const other = await open(`/f/${session.id}`);

    expect(await other.textContent('#step')).toBe('Step 2 of 2');
    const { session: read } = (await service.get(`/v1/sessions/${session.id}`)).json;
    expect(read.partial_answers).toMatchObject({ laptop: false });
  });

  it('upload files with script, and let them be taken away again', async () => {
    const session = await givenSession({
      fields: [{ id: 'cv', type: 'file', required: true, maxFiles: 3, maxBytes: 100 }],
    });
    const page = await open(`/f/${session.id}`);
    const file = (name: string, size: number) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.alloc(size, 'a'),
    });

    await page.setInputFiles('[name=cv]', [file('one.txt', 10), file('two.txt', 20)]);
    await page.locator('.files button').nth(1).waitFor();
    await page.setInputFiles('[name=cv]', file('large.txt', 1000));
    await page.waitForSelector('.files .error');
    await page.click('.files li:has-text("one.txt") button');
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await answersOf(session)).toMatchObject({ cv: [{ filename: 'two.txt', size: 20 }] });
    // The refusal of the large file is in the browser's console.
    expect(problems.splice(0)).toEqual([expect.stringContaining('422')]);
  });

  it('keep their frame and its height on another origin that the form names', async () => {
    const host = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(
        `<!doctype html><title>Shop</title><body><script src="${service.url}/embed.js" data-session="${id}"></script>`,
      );
    });
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
    const session = await givenSession({ fields: steps, settings: { embedOrigins: [origin] } });
    const id = session.id;
    const page = await open(origin);

    const frame = page.frameLocator('iframe');
    await frame.locator('[name=laptop][value=false]').check();
    await expect
      .poll(() => page.locator('iframe').evaluate((element) => element.style.height))
      .toMatch(/^\d+px$/);
    const { height } = (await page.locator('iframe').boundingBox()) ?? { height: 0 };
    expect(height).toBeGreaterThan(350);
    await frame.locator('button[value=forward]').click();
    await frame.locator('[name=consent]').check();
    await frame.locator('button[value=forward]').click();
    await frame.locator('.copy').waitFor();

    expect(await answersOf(session)).toEqual({ laptop: false, consent: true });
    host.close();
  });

  it('have no accessibility problem in any state, light or dark, in either direction', async () => {
    const french = { fields: everyType, settings: { locale: 'ar', theme: { accentColor: '#ffd400' } } };
    const found: Record<string, unknown> = {};
    for (const colorScheme of ['light', 'dark'] as const) {
      const session = await givenSession(french);
      const page = await open(`/f/${session.id}`, { colorScheme });
      found[`form ${colorScheme}`] = await audit(page);
      expect(await page.getAttribute('html', 'dir')).toBe('rtl');
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');
      found[`errors ${colorScheme}`] = await audit(page);
      await page.goto(`${service.url}/f/sess_unknown`);
      found[`unknown ${colorScheme}`] = await audit(page);
      const draft = await service.givenDraft();
      await page.goto(service.url + draft.activate_url);
      found[`activation ${colorScheme}`] = await audit(page);
      await page.fill('#email', 'owner@example.com');
      await page.click('button');
      await page.waitForSelector('h1:has-text("active")');
      found[`activated ${colorScheme}`] = await audit(page);
    }

    expect(Object.entries(found).filter(([, violations]) => JSON.stringify(violations) !== '[]')).toEqual([]);
    expect(problems.splice(0).filter((problem) => !/status of (404|422)/.test(problem))).toEqual([]);
  });

  it('run nothing that an author or a prefill brings along', async () => {
    for (const [index, text] of hostileTexts.entries()) {
      const session = await givenSession({
        name: text,
        description: text,
        fields: [
          { id: 'a', type: 'text', label: text, description: text, placeholder: text },
          { id: 'b', type: 'textarea', label: text },
          { id: 'c', type: 'select', options: [{ label: text, value: text }] },
          { id: 'd', type: 'radio', options: [{ label: text, value: text }] },
        ],
        settings: { successMessage: text, submitLabel: text.slice(0, 100), allowPartial: true },
        session: { prefill: { a: text, b: text, c: text, d: text }, metadata: { [text]: text } },
      });
      const page = await open(`/f/${session.id}`);
      const shown = [
        await page.inputValue('[name=a]'),
        await page.inputValue('[name=b]'),
        await page.textContent('h1'),
      ];
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');

      expect([index, await page.evaluate('window.hit')]).toEqual([index, undefined]);
      expect(shown).toEqual([text, text, text]);
      await page.context().close();
    }
  });

  async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ locale: 'en-US', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      // A refused step and a used link are what some tests are about.
      if (message.type() === 'error' && !/status of (409|422)/.test(message.text()))
        problems.push(message.text());
      else if (
        message.type() === 'error' &&
        path.startsWith('/f/') &&
        /uploads/.test(message.location().url)
      ) {
        problems.push(message.text());
      }
    });
    await page.goto(new URL(path, service.url).href);
    return page;
  }

  async function audit(page: Page): Promise<string[]> {
    await page.evaluate(axe);
    const found = await page.evaluate('axe.run(document).then(({ violations }) => violations)');
    return (found as { id: string; nodes: { html: string }[] }[]).flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html}`),
    );
  }

  async function expectWidth(page: Page): Promise<void> {
    const [width, room] = [
      await page.locator('html').evaluate((html) => html.scrollWidth),
      page.viewportSize()?.width ?? 0,
    ];
    expect(width).toBeLessThanOrEqual(room);
  }

  async function givenSession({
    session = {},
    ...definition
  }: {
    session?: object;
    [attribute: string]: unknown;
  }) {
    const form = await service.givenPublishedForm(definition);
    const made = await service.post(`/v1/forms/${form.id}/sessions`, session);
    expect(made.status).toBe(201);
    return made.json.session as { id: string };
  }

  async function answersOf({ id }: { id: string }) {
    const { session } = (await service.get(`/v1/sessions/${id}`)).json;
    const { submission } = (await service.get(`/v1/submissions/${session.submission_id}`)).json;
    return submission.answers;
  }
});

const everyType = [
  { id: 'name', type: 'text', required: true, placeholder: 'Ada Lovelace', maxLength: 80 },
  { id: 'notes', type: 'textarea', description: 'Several lines', required: true },
  { id: 'email', type: 'email' },
  { id: 'site', type: 'url' },
  { id: 'phone', type: 'phone' },
  { id: 'age', type: 'number', min: 1, max: 120, step: 1 },
  { id: 'laptop', type: 'boolean', required: true },
  { id: 'consent', type: 'checkbox', required: true, description: 'All of the terms' },
  { id: 'day', type: 'date', min: '2026-12-01' },
  { id: 'at', type: 'time' },
  { id: 'call', type: 'datetime' },
  {
    id: 'diet',
    type: 'select',
    options: [
      { label: 'None', value: 'none' },
      { label: 'Vegan', value: 'vegan' },
    ],
  },
  {
    id: 'track',
    type: 'radio',
    required: true,
    options: [
      { label: 'Design', value: 'des' },
      { label: 'Engineering', value: 'eng' },
    ],
  },
  {
    id: 'languages',
    type: 'multi_select',
    minItems: 1,
    options: [
      { label: 'English', value: 'en' },
      { label: 'German', value: 'de' },
    ],
  },
  { id: 'cv', type: 'file' },
];

/** What a person presses in each control of `everyType`; in en-US the month comes first. */
const keystrokes: [selector: string, keys: string[]][] = [
  ['[name=name]', [...'Ada']],
  ['[name=notes]', ['a', 'Enter', 'b']],
  ['[name=email]', [...'a@b.co']],
  ['[name=site]', [...'http://a.b']],
  ['[name=phone]', [...'+4930123456']],
  ['[name=age]', ['7']],
  ['[name=laptop][value=true]', ['Space']],
  ['[name=consent]', ['Space']],
  ['[name=day]', [...'12242026']],
  ['[name=at]', [...'1030A']],
  ['[name=call]', [...'122420261030A']],
  ['[name=diet]', ['v']],
  ['[name=track][value=des]', ['Space', 'ArrowDown']],
  ['[name=languages][value=en]', ['Space', 'Tab', 'Space']],
];

const steps = [
  { id: 'laptop', type: 'boolean', required: true },
  { id: 'os', type: 'text', required: true, visibleWhen: { field: 'laptop', op: 'eq', value: true } },
  { id: 'consent', type: 'checkbox', required: true, page: 2 },
];

const hostileTexts = [
  '<script>window.hit=1</script>',
  '"><img src=x onerror="window.hit=1">',
  "' onmouseover='window.hit=1' x='",
  '</textarea></title></style><svg onload=window.hit=1>',
  'javascript:window.hit=1',
  '{{constructor.constructor("window.hit=1")()}} \u0024{window.hit=1} <%= hit %>',
  '&lt;script&gt;window.hit=1&lt;/script&gt; &amp;quot; &#x3c;',
  '\u202Ertl \u0001 <!-- --!> ]]> <![CDATA[',
];
