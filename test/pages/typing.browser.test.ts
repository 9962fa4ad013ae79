import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describe.skipIf(noBrowser)('while a person types', () => {
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

  it('a corrected field is no longer shown as wrong', async () => {
    const session = await givenSession(service, {
      fields: [
        { id: 'seats', type: 'number', max: 5 },
        { id: 'name', type: 'text', required: true },
      ],
    });
    const page = await browser.open(`/f/${session.id}`);
    await page.fill('[name=seats]', '9');
    await page.click('button[value=forward]');
    await page.waitForSelector('.summary');
    expect(await page.locator('.wrong p.error').allTextContents()).toEqual([
      'Error: Enter 5 or fewer.',
      'Error: Enter name.',
    ]);

    await page.fill('[name=seats]', '4');

    expect(
      await page
        .locator('.wrong')
        .evaluateAll((fields) => fields.map((field) => field.getAttribute('data-field'))),
    ).toEqual(['name']);
    expect(await page.isVisible('[id="seats.error"]')).toBe(false);
    expect(await page.getAttribute('[name=seats]', 'aria-invalid')).toBeNull();
    expect(await browser.audit(page)).toEqual([]);
  });

  it('a text with a limit says how many characters are left', async () => {
    const session = await givenSession(service, {
      fields: [
        { id: 'note', type: 'textarea', maxLength: 10 },
        { id: 'essay', type: 'textarea' },
      ],
    });
    const page = await browser.open(`/f/${session.id}`);

    await page.fill('[name=note]', 'ab👍');
    expect(await page.textContent('[id="note.hint"]')).toBe('7 of 10 characters left');
    await page.fill('[name=note]', 'x'.repeat(12));
    expect(await page.textContent('[id="note.hint"]')).toBe('2 characters too many');
    await page.fill('[name=essay]', 'x');
    expect(await page.locator('[id="essay.hint"]').count()).toBe(0);
  });

  it('an error beside a file goes when a better one comes, and sizes are those of the language', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'cv', type: 'file', maxBytes: 2_000_000, maxFiles: 3 }],
      settings: { locale: 'de' },
    });
    const page = await browser.open(`/f/${session.id}`);
    const file = (name: string, size: number) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.alloc(size, 'a'),
    });

    await page.setInputFiles('[type=file]', file('large.txt', 2_000_001));
    await page.waitForSelector('.files .error');
    expect(await page.textContent('.files .error')).toBe(
      'large.txt ist zu groß. Wählen Sie eine Datei von höchstens 2 MB aus.',
    );
    await page.setInputFiles('[type=file]', file('cv.txt', 1_900_000));
    await page.waitForSelector('.files button');

    expect(await page.locator('.files .error').count()).toBe(0);
    expect(await page.locator('.files li').allInnerTexts()).toEqual(['cv.txt\n1,8 MB\nEntfernen']);
    expect(await page.getAttribute('.files button', 'aria-label')).toBe('cv.txt entfernen');
  });

  it('a file has its size after a reload and after a refusal, too', async () => {
    const fields = [
      { id: 'cv', type: 'file' },
      { id: 'name', type: 'text', required: true },
    ];
    for (const allowPartial of [true, false]) {
      const session = await givenSession(service, { fields, settings: { locale: 'de', allowPartial } });
      const page = await browser.open(`/f/${session.id}`);
      const buffer = Buffer.alloc(1_900_000, 'a');
      await page.setInputFiles('[type=file]', { name: 'cv.txt', mimeType: 'text/plain', buffer });
      await page.waitForSelector('.files button');
      if (allowPartial) {
        // "Gespeichert" may still stand there for a save that was begun before the file had arrived.
        await until(async () => {
          const { json } = await service.get(`/v1/sessions/${session.id}`);
          return json.session.partial_answers?.cv;
        });
        await page.reload();
      }
      for (const again of [false, true]) {
        if (again || !allowPartial) {
          await page.click('button[value=forward]');
          await page.waitForSelector('.summary');
        }
        await page.waitForSelector('.files button');
        expect(await page.locator('.files li').allInnerTexts()).toEqual(['cv.txt\n1,8 MB\nEntfernen']);
      }
    }
  });

  it.each([
    ['with script', true],
    ['without script', false],
  ])(
    'an address without https:// is one, and a new question has a link to it, %s',
    async (_, javaScriptEnabled) => {
      const session = await givenSession(service, {
        fields: [
          { id: 'site', type: 'url' },
          {
            id: 'why',
            type: 'text',
            visibleWhen: { field: 'site', op: 'eq', value: 'https://example.com/a?b' },
          },
        ],
      });
      const page = await browser.open(`/f/${session.id}`, { javaScriptEnabled });

      await page.fill('[name=site]', 'example.com/a?b');
      if (!javaScriptEnabled) {
        // With script the question is there as soon as its condition is met.
        await page.click('button[value=forward]');
        await page.click('.notice a');
        expect(await page.evaluate('location.hash')).toBe('#why.0');
      }
      await page.fill('[name=why]', 'Because');
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');

      expect(await answersOf(service, session)).toEqual({ site: 'https://example.com/a?b', why: 'Because' });
    },
  );

  it('thanks are not said twice', async () => {
    const session = await givenSession(service, { settings: { successMessage: 'Thank you!' } });
    const page = await browser.open(`/f/${session.id}`);
    await page.fill('[name=email]', 'a@example.com');
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await page.textContent('h1')).toBe('Your answers have been received.');
    expect(await page.textContent('.lead')).toBe('Thank you!');
    expect(await page.textContent('.form-name')).toBe('Contact');
  });

  it('the activation page names a wrong address itself', async () => {
    const draft = await service.givenDraft();
    const page = await browser.open(draft.activate_url);

    await page.fill('#email', 'not an address');
    await page.click('button');
    await page.waitForSelector('.wrong');
    expect(await page.textContent('[id="email.error"]')).toBe(
      'Error: Enter an email address, like name@example.com.',
    );
    expect(await browser.audit(page)).toEqual([]);
    await page.fill('#email', 'owner@example.com');
    await page.click('button');
    await page.waitForSelector('.share');

    expect((await service.get(`/v1/forms/${draft.id}`)).json.form.status).toBe('published');
  });
});
