import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { fileOf } from '../support/files.ts';
import { startService, type TestService } from '../support/server.ts';

const fields = [
  { id: 'sign', type: 'signature', label: 'Your signature', required: true },
  { id: 'note', type: 'text', page: 2, required: true },
];

describe.skipIf(noBrowser)('a signature on the page', () => {
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });
  afterEach(() => browser.expectNoProblems());

  it('is drawn on a phone, kept over the steps with its size, and stored as a picture', async () => {
    const session = await givenSession(service, { fields, settings: { allowPartial: true } });
    const page = await browser.open(`/f/${session.id}`, { viewport: phone, deviceScaleFactor: 3 });

    await draw(page);
    expect(await browser.audit(page)).toEqual([]);
    await go(page, '[name=note]');
    await page.click('button[value=back]');
    await page.waitForSelector('.files li');
    const kept = await page.textContent('.files li');
    expect(kept).toMatch(/^\s*Drawn signature\s*\d+ kB\s*Remove\s*$/);
    expect(await page.isVisible('canvas')).toBe(false);
    await page.reload();
    await page.waitForSelector('.files button');
    expect((await page.textContent('.files li'))?.trim()).toBe(kept?.trim());
    expect(await browser.audit(page)).toEqual([]);
    await go(page, '[name=note]');
    await page.fill('[name=note]', 'x');
    await go(page, '.copy');

    const { sign } = await answersOf(service, session);
    expect(sign).toMatchObject({ filename: 'signature.png', content_type: 'image/png' });
    const { content } = await fileOf(service.client(UploadsService).getUpload({ uploadId: sign.upload_id }));
    expect(await inkOf(page, content)).toBeGreaterThan(100);
  });

  it('is shown as a picture to who checks and keeps the answers', async () => {
    const definition = { fields: [fields[0]], settings: { review: true } };
    const [kept, fleeting] = await Promise.all([
      givenSession(service, { ...definition, settings: { review: true, allowPartial: true } }),
      givenSession(service, definition),
    ]);
    for (const { id } of [kept, fleeting]) {
      const page = await browser.open(`/f/${id}`);
      await draw(page);
      for (const place of ['.review', '.copy']) {
        await go(page, place);
        const picture = page.getByRole('img', { name: 'Your signature' });
        await expect
          .poll(() => picture.evaluate((image: { naturalWidth: number }) => image.naturalWidth))
          .toBeGreaterThan(100);
        expect(await page.textContent(place)).not.toContain('signature.png');
        if (id === kept.id) expect(await browser.audit(page)).toEqual([]);
      }
    }
  });

  it('is typed after all, or drawn after all: the last way counts', async () => {
    const [first, second] = await Promise.all(
      [1, 2].map(() => givenSession(service, { fields: [fields[0]] })),
    );
    const page = await browser.open(`/f/${first?.id}`);
    await draw(page);
    await page.fill('[name="sign.text"]', 'Ada Lovelace');
    await go(page, '.copy');

    await page.goto(new URL(`/f/${second?.id}`, service.url).href);
    await page.fill('[name="sign.text"]', 'Ada Lovelace');
    await draw(page);
    expect(await page.inputValue('[name="sign.text"]')).toBe('');
    await go(page, '.copy');

    expect(await answersOf(service, { id: first?.id ?? '' })).toEqual({ sign: { text: 'Ada Lovelace' } });
    expect((await answersOf(service, { id: second?.id ?? '' })).sign).toHaveProperty('upload_id');
  });

  it('is none once it was cleared, and the page says so at the field', async () => {
    const session = await givenSession(service, { fields: [fields[0]] });
    const page = await browser.open(`/f/${session.id}`, { colorScheme: 'dark' });

    await draw(page);
    await page.waitForSelector('.files li', { state: 'attached' });
    await page.click('.pad button');
    await go(page, '.summary');

    expect(await page.textContent('.summary a')).toBe('Your signature – Sign here.');
    expect(await browser.audit(page)).toEqual([]);
    await page.click('.summary a');
    await page.keyboard.type('Ada');
    await go(page, '.copy');
    expect(await answersOf(service, session)).toEqual({ sign: { text: 'Ada' } });
  });

  it('is typed where only a drawing is taken, too: the name is drawn', async () => {
    const drawn = { ...fields[0], accept: ['drawn'] };
    const session = await givenSession(service, { fields: [drawn] });
    const page = await browser.open(`/f/${session.id}`);

    await page.getByLabel('Type your full name').pressSequentially('Ada Lovelace');
    await go(page, '.copy');

    const { sign } = await answersOf(service, session);
    const { content } = await fileOf(service.client(UploadsService).getUpload({ uploadId: sign.upload_id }));
    expect(await inkOf(page, content)).toBeGreaterThan(100);
  });

  it('works on the form’s own page, where the drawing begins the session', async () => {
    const form = await service.givenPublishedForm({ fields: [fields[0]] });
    const page = await browser.open(`/f/${form.id}`);

    await draw(page);
    await go(page, '.copy');

    const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
    expect(submissions[0].answers.sign).toHaveProperty('upload_id');
  });

  it('is typed, or chosen as a picture, without script', async () => {
    const both = await givenSession(service, { fields: [fields[0]] });
    const drawn = await givenSession(service, { fields: [{ ...fields[0], accept: ['drawn'] }] });
    const page = await browser.open(`/f/${both.id}`, { javaScriptEnabled: false });
    expect(await page.isVisible('canvas')).toBe(false);
    await page.getByLabel('Type your full name').fill('Ada');
    await go(page, '.copy');

    await page.goto(new URL(`/f/${drawn.id}`, service.url).href);
    await go(page, '.summary');
    const picture = page.getByLabel('Choose a picture of your signature (PNG)');
    await picture.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('text') });
    await go(page, '.summary');
    expect(await page.textContent('.error')).toContain('a.png isn’t an accepted type. Accepted types: PNG.');
    await picture.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: png });
    await go(page, '.copy');

    expect(await answersOf(service, both)).toEqual({ sign: { text: 'Ada' } });
    expect((await answersOf(service, drawn)).sign).toMatchObject({ filename: 'a.png', size: png.length });
  });

  it('is taken by a form made without a key only if it is typed', async () => {
    const make = (attributes: object) =>
      service.post(
        '/api/forms/create',
        { name: 'F', slug: 'f', fields: [{ ...fields[0], ...attributes }], delivery: { type: 'email' } },
        { key: null },
      );

    const refused = await make({ accept: ['typed', 'drawn'] });
    const draft = (await make({})).json.form;
    await service.post(draft.activate_url, { email: 'owner@example.com' }, { key: null });
    const put = await service.post(`/api/forms/${draft.id}/uploads?field=sign&filename=a.png`, png, {
      headers: { 'content-type': 'application/octet-stream' },
    });
    const page = await browser.open(`/f/${draft.id}`);

    expect([refused.status, refused.json.error.details]).toEqual([
      422,
      [
        {
          path: 'fields.0.accept.1',
          code: 'custom',
          received: '"drawn"',
          message: 'Only forms made with an API key may have this',
        },
      ],
    ]);
    expect(put.status).toBe(422);
    expect(await page.locator('canvas').count()).toBe(0);
    await page.fill('[name="sign.text"]', 'Ada');
    await go(page, '.copy');
  });
});

/** Draws a line over the area of the signature, as soon as it is there. */
async function draw(page: Page): Promise<void> {
  await page.waitForSelector('canvas[width]');
  await page.locator('canvas').scrollIntoViewIfNeeded();
  const box = await page.locator('canvas').boundingBox();
  const { x = 0, y = 0 } = box ?? {};
  await page.mouse.move(x + 20, y + 20);
  await page.mouse.down();
  await page.mouse.move(x + 80, y + 100, { steps: 8 });
  await page.mouse.move(x + 160, y + 30, { steps: 8 });
  await page.mouse.up();
}

async function go(page: Page, there: string): Promise<void> {
  await page.click('button[value=forward]');
  await page.waitForSelector(there);
}

/** How many pixels of a picture are not white. */
async function inkOf(page: Page, picture: Buffer): Promise<number> {
  return page.evaluate(`(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${picture.toString('base64')}';
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, index) => index % 4 === 0 && value < 128).length;
  })()`);
}

const phone = { width: 320, height: 640 };

/** One white pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=',
  'base64',
);
