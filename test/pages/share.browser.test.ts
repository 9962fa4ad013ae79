import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import PostalMime from 'postal-mime';
import decodeQR from 'qr/decode.js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

let service: TestService;
/** What the service calls itself. */
let own: string;
beforeAll(async () => {
  service = await startService();
  own = service.url.replace('localhost', '127.0.0.1');
});
afterAll(() => service[Symbol.asyncDispose]());

describe('how to share a form', () => {
  it('is told when it is activated, and to its owner, as long as it is published', async () => {
    const draft = await service.givenDraft();
    const before = await service.get(`/v1/forms/${draft.id}`);
    const activated = await service.post(draft.activate_url, { email: 'owner@example.com' });
    const published = await service.get(`/v1/forms/${draft.id}`);
    const listed = await service.get('/v1/forms');
    await service.post(`/v1/forms/${draft.id}/archive`);
    const archived = await service.get(`/v1/forms/${draft.id}`);

    const { share } = published.json.form;
    expect(share).toMatchObject({
      page_url: `${own}/f/${draft.id}`,
      submissions_url: `${own}/api/forms/${draft.id}/submissions`,
      html: expect.stringContaining(`action="${own}/api/forms/${draft.id}/submissions"`),
      embed: `<script src="${own}/embed.js" data-form="${draft.id}"></script>`,
    });
    expect(activated.json.form.share).toEqual(share);
    expect([before, archived].map(({ json }) => json.form.share)).toEqual([undefined, undefined]);
    expect(listed.json.forms[0].share).toBeUndefined();
  });

  it('has the address of the QR code, and the code itself only for who asks', async () => {
    const draft = await service.givenDraft();
    const activated = await service.post(draft.activate_url, { email: 'owner@example.com' });
    const read = await service.get(`/v1/forms/${draft.id}`);
    const asked = await service.get(`/v1/forms/${draft.id}?qr_svg=true`);
    const image = await service.get(`/f/${draft.id}/qr.svg`, { key: null });
    const head = await fetch(`${service.url}/f/${draft.id}/qr.svg`, { method: 'HEAD' });
    const hidden = await service.givenPublishedForm({ settings: { publicPage: false } });
    const none = await service.get(`/f/${hidden.id}/qr.svg`, { key: null });
    await service.post(`/v1/forms/${draft.id}/archive`);
    const archived = await service.get(`/f/${draft.id}/qr.svg`, { key: null });

    const [first, second, third] = [activated, read, asked].map(({ json }) => json.form.share);
    expect(first).toMatchObject({ qr_url: `${own}/f/${draft.id}/qr.svg`, qr_svg: null });
    expect(second).toEqual(first);
    expect(third).toEqual({ ...first, qr_svg: image.text });
    expect(image.text).toMatch(/^<svg /);
    expect(head.headers.get('content-type')).toBe('image/svg+xml');
    expect([image, head, none, archived].map(({ status }) => status)).toEqual([200, 200, 404, 410]);
  });

  it('has null for what there is not', async () => {
    const form = await service.givenPublishedForm({
      fields: [{ id: 'consent', type: 'checkbox', required: true, answeredBy: 'human' }],
      settings: { publicPage: false },
    });

    const { share } = (await service.get(`/v1/forms/${form.id}`)).json.form;

    expect(share).toMatchObject({ page_url: null, html: null, embed: null, qr_url: null, qr_svg: null });
  });

  it('is in the mail that asks its owner to confirm, if it has a page', async () => {
    const [shown, hidden] = [
      await service.givenDraft({ name: 'Shown' }),
      await service.givenDraft({ name: 'Hidden', settings: { publicPage: false } }),
    ];
    for (const { activate_url, name } of [shown, hidden]) {
      await service.post(activate_url, { email: `${name}@example.com` });
    }
    const mailAbout = async (name: string) => {
      const mails = await Promise.all((await service.mails()).map((mail) => PostalMime.parse(mail)));
      return mails.find(({ subject }) => subject === `Confirm your form: ${name}`);
    };
    await until(
      async () => (await mailAbout('Shown')) !== undefined && (await mailAbout('Hidden')) !== undefined,
    );

    for (const part of ['text', 'html'] as const) {
      expect((await mailAbout('Shown'))?.[part]).toContain(`${own}/f/${shown.id}`);
      expect((await mailAbout('Hidden'))?.[part]).not.toContain('/f/');
    }
  });
});

describe.skipIf(noBrowser)('the page after an activation', () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await startBrowser(service);
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());
  afterEach(() => browser.expectNoProblems());

  it('shows address, QR code and snippets, and copies them', async () => {
    const { page, draft } = await activate({ permissions: ['clipboard-read', 'clipboard-write'] });
    const pageUrl = `${own}/f/${draft.id}`;

    await page.click('button[data-copy]');
    await page.locator('button', { hasText: 'Copied' }).waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    const scanned = await scan(page);
    const problems = await browser.audit(page);
    const code = () => page.locator('.codes .snippet:visible code').allTextContents();
    const first = await code();
    await page.check('text=Submission endpoint');
    const second = await code();
    const [svg] = await Promise.all([page.waitForEvent('download'), page.click('text=Save QR code (SVG)')]);
    const [png] = await Promise.all([page.waitForEvent('download'), page.click('text=Save QR code (PNG)')]);
    await page.click('a.button');
    await page.waitForSelector('[name=email]');

    expect([copied, scanned, page.url()]).toEqual([pageUrl, pageUrl, pageUrl]);
    expect(problems).toEqual([]);
    expect(first).toEqual([expect.stringContaining('/embed.js')]);
    expect(second).toEqual([`${own}/api/forms/${draft.id}/submissions`]);
    expect(await readFile(await svg.path(), 'utf8')).toMatch(/^<svg /);
    expect((await readFile(await png.path())).subarray(1, 4).toString()).toBe('PNG');
  });

  it('shows them without script, to be selected by a click, on a phone in the dark', async () => {
    const { page, draft } = await activate({
      javaScriptEnabled: false,
      viewport: { width: 360, height: 640 },
      colorScheme: 'dark',
    });

    expect(await page.locator('button[data-copy]:visible').count()).toBe(0);
    expect(await page.locator('.snippet code').first().textContent()).toBe(`${own}/f/${draft.id}`);
    expect(await page.evaluate(`getComputedStyle(document.querySelector('.snippet code')).userSelect`)).toBe(
      'all',
    );
    expect(await page.locator('html').evaluate((html) => html.scrollWidth)).toBeLessThanOrEqual(360);
  });

  it('gives snippets that work on another site as they are', async () => {
    let body = '';
    await using site = await startSite(
      () => `<!doctype html><html lang="en"><title>Shop</title><body>${body}`,
    );
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'email', type: 'email', required: true },
        { id: 'signature', type: 'signature' },
        { id: 'amount', type: 'number', min: 0.5 },
      ],
      settings: { embedOrigins: [site.origin] },
    });
    const { share } = (await service.get(`/v1/forms/${form.id}`)).json.form;

    body = share.html;
    const page = await browser.open(site.origin);
    await page.fill('[name=email]', 'html@example.com');
    await page.getByLabel('Signature').fill('Ada');
    await page.getByLabel('Amount').fill('1.25');
    await page.click('button');
    await page.waitForSelector('h1.done');
    body = `<script type="module">${share.fetch}</script>`;
    const logged = page.waitForEvent('console');
    await page.goto(site.origin);
    const told = (await logged).text();
    body = share.embed;
    await page.goto(site.origin);
    const frame = page.frameLocator('iframe');
    await frame.locator('[name=email]').fill('embed@example.com');
    await frame.locator('button[value=forward]').click();
    await frame.locator('.copy').waitFor();

    expect(told).toMatch(/^sub_/);
    const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
    expect(submissions.map(({ source }: { source: string }) => source)).toEqual([
      'hosted',
      'website',
      'website',
    ]);
    expect(submissions.at(-1).answers).toEqual({
      email: 'html@example.com',
      signature: { text: 'Ada' },
      amount: 1.25,
    });
  });

  async function activate(options: Parameters<TestBrowser['open']>[1]) {
    const draft = await service.givenDraft();
    const page = await browser.open(draft.activate_url, options);
    await page.fill('#email', 'owner@example.com');
    await page.click('button');
    await page.waitForSelector('.share');
    return { page, draft };
  }
});

/** What a telephone would read off the QR code. */
async function scan(page: Page): Promise<string> {
  const size = 400;
  const data = await page.evaluate(`(() => {
    const canvas = Object.assign(document.createElement('canvas'), { width: ${size}, height: ${size} });
    const context = canvas.getContext('2d');
    context.drawImage(document.querySelector('img.qr'), 0, 0, ${size}, ${size});
    return [...context.getImageData(0, 0, ${size}, ${size}).data];
  })()`);
  return decodeQR({ width: size, height: size, data: Uint8Array.from(data as number[]) });
}
