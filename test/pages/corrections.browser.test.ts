import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sizeLimitInWords } from '../../src/text/quantities.ts';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

const ways = [
  ['with script', {}],
  ['without script', { javaScriptEnabled: false }],
] as const;

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

describe.skipIf(noBrowser)('a person who answers', () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await startBrowser(service);
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it('reads how many characters are left, or too many', async () => {
    const session = await givenSession(service, {
      fields: [
        { id: 'note', type: 'text', maxLength: 5 },
        { id: 'long', type: 'textarea', maxLength: 1500 },
      ],
    });
    const page = await browser.open(`/f/${session.id}`);
    const hint = page.locator('.hint >> nth=0');
    const longHint = page.locator('.hint >> nth=1');
    expect(await longHint.textContent()).toBe('At most 1,500 characters');

    const said: (string | null)[] = [];
    for (const text of ['abc', 'abcdef', 'abcdefg']) {
      await page.fill('[name=note]', text);
      said.push(await hint.textContent());
    }

    expect(said).toEqual(['2 of 5 characters left', '1 character too many', '2 characters too many']);
    await page.fill('[name=long]', 'abc');
    expect(await longHint.textContent()).toBe('1,497 of 1,500 characters left');
    await browser.expectNoProblems();
  });

  it.each(ways)('takes back an optional choice, %s', async (_name, options) => {
    const session = await givenSession(service, {
      fields: [
        { id: 'stars', type: 'rating', label: 'Stars' },
        {
          id: 'plan',
          type: 'radio',
          label: 'Plan',
          allowOther: true,
          options: [{ label: 'Free', value: 'free' }],
        },
        { id: 'sure', type: 'boolean', label: 'Sure', required: true },
      ],
    });
    const page = await browser.open(`/f/${session.id}`, options);
    expect(await page.locator('button.clear:visible').count()).toBe(0);

    await page.locator('[name=stars]').nth(2).check({ force: true });
    await page.check('[name=plan][value=free]');
    await page.check('[name=sure][value=true]');
    expect(await page.locator('button.clear:visible').count()).toBe(2);
    if (!('javaScriptEnabled' in options)) expect(await browser.audit(page)).toEqual([]);
    await page.click('[data-field=stars] button.clear');
    await expect.poll(() => page.locator('button.clear:visible').count()).toBe(1);
    expect(await page.isChecked('[name=plan][value=free]')).toBe(true);
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');

    expect(await answersOf(service, session)).toEqual({ plan: 'free', sure: true });
    await browser.expectNoProblems();
  });

  it('presses Enter and goes on, though a button that clears stands before it', async () => {
    const session = await givenSession(service, {
      fields: [
        { id: 'stars', type: 'rating' },
        { id: 'name', type: 'text' },
      ],
    });
    const page = await browser.open(`/f/${session.id}`);
    await page.locator('[name=stars]').nth(2).check({ force: true });

    await page.fill('[name=name]', 'Ada');
    await page.press('[name=name]', 'Enter');
    await page.waitForSelector('.copy');

    expect(await answersOf(service, session)).toEqual({ stars: 3, name: 'Ada' });
    await browser.expectNoProblems();
  });

  it('goes on from step to step by their own titles', async () => {
    const session = await givenSession(service, {
      name: 'Application',
      fields: [
        { id: 'name', type: 'text' },
        { id: 'city', type: 'text', page: 2 },
      ],
      pages: [{ title: 'You' }, { title: 'Where you live' }],
      settings: { review: true },
    });
    const page = await browser.open(`/f/${session.id}`);
    const headings = () => page.locator('h1, h2, .form-name').allTextContents();

    const first = await headings();
    await page.click('button[value=forward]');
    await page.waitForSelector('text=Where you live');
    const second = await headings();
    expect(await page.textContent('h1:focus')).toBe('Where you live');
    expect(await browser.audit(page)).toEqual([]);
    await page.click('button[value=forward]');
    await page.waitForSelector('.review');

    expect(first).toEqual(['Application', 'You']);
    expect(second).toEqual(['Application', 'Where you live']);
    expect(await page.textContent('h1')).toBe('Check your answers');
    await browser.expectNoProblems();
  });

  it('reads the frame in their language, and the form’s own words as they run', async () => {
    const label = 'What is your name?';
    const session = await givenSession(service, {
      name: 'Contact',
      fields: [{ id: 'name', type: 'text', label }],
    });
    const page = await browser.open(`/f/${session.id}`, { locale: 'ar' });

    expect(await page.getAttribute('html', 'dir')).toBe('rtl');
    expect(await page.textContent('button[value=forward]')).toBe('إرسال');
    const direction = (selector: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).direction`);
    expect([await direction('h1'), await direction('label')]).toEqual(['ltr', 'ltr']);
    expect(await direction('.actions')).toBe('rtl');
    expect(await browser.audit(page)).toEqual([]);
    await browser.expectNoProblems();
  });

  it('sees one name of a file, where the file is', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'cv', type: 'file', maxBytes: 1_000_000 }],
    });
    const page = await browser.open(`/f/${session.id}`);
    expect(await page.textContent('.hint')).toBe('Choose a file, or drop it here · Size: at most 1 MB');

    await page.setInputFiles('[name=cv]', {
      name: 'big.txt',
      mimeType: 'text/plain',
      buffer: Buffer.alloc(1_000_001),
    });
    await page.waitForSelector('.files .error');
    expect(await page.textContent('.files .error')).toBe(
      'big.txt is too large. Choose a file of at most 1 MB.',
    );
    await page.setInputFiles('[name=cv]', {
      name: 'cv.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('a'),
    });
    await page.waitForSelector('.files .name');

    const color = "getComputedStyle(document.querySelector('input[type=file]')).color";
    expect(await page.evaluate(color)).toBe('rgba(0, 0, 0, 0)');
    await browser.expectNoProblems();
  });
});

describe('what is wrong', () => {
  it('with an address is named part by part, at once', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'home', type: 'address', label: 'Home', required: true }],
    });
    const body = new URLSearchParams({ _go: 'forward', _shown: 'home', 'home.region': 'Kent' });

    const page = await service.post(`/f/${session.id}`, body, {
      key: null,
      headers: { accept: 'text/html' },
    });

    expect(page.status).toBe(422);
    for (const part of ['Address line 1', 'Town or city', 'Country']) {
      expect(page.text).toContain(`Enter “${part}”.`);
    }
    expect(page.text.match(/aria-invalid="true"/g)).toHaveLength(3);
  });

  it('with a file names the file, the rule and the limit as it was set', async () => {
    const session = await givenSession(service, {
      fields: [{ id: 'cv', type: 'file', label: 'CV', accept: ['application/pdf'], maxBytes: 1_000_000 }],
    });
    const refusalOf = async (file: File) => {
      const body = new FormData();
      body.set('_go', 'forward');
      body.set('_shown', 'cv');
      body.set('cv', file);
      const page = await service.post(`/f/${session.id}`, body, {
        key: null,
        headers: { accept: 'text/html' },
      });
      return /class="error"[^>]*>.*?<\/span>([^<]*)</.exec(page.text)?.[1];
    };

    expect(await refusalOf(new File(['MZ'], 'bad.exe'))).toBe(
      'bad.exe isn’t an accepted type. Accepted types: PDF.',
    );
    expect(await refusalOf(new File([`%PDF-1.7${' '.repeat(1_000_000)}`], 'big.pdf'))).toBe(
      'big.pdf is too large. Choose a file of at most 1 MB.',
    );
    expect(await refusalOf(new File([], 'none.pdf'))).toBe('none.pdf is empty. Choose another file.');
  });

  it.each([
    [1_000_000, '1 MB'],
    [10 * 1024 * 1024, '10 MB'],
    [512 * 1024, '512 kB'],
    [500_000, '500 kB'],
    [100, '100 B'],
    [10 * 1024 * 1024, '10 Mo', 'fr'],
  ])('says that at most %i bytes are %s', (bytes, words, tag = 'en') => {
    expect(sizeLimitInWords(bytes, tag).replace(/\s/, ' ')).toBe(words);
  });
});

describe('an address that leads nowhere', () => {
  it.each(['/nowhere', '/owner/nowhere', '/api/nowhere', '/v1/nowhere'])(
    'answers a browser with a page, and a program with JSON: %s',
    async (path) => {
      const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
      const page = await fetch(new URL(path, service.url), { headers });
      const json = await service.get(path);

      expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect(await page.text()).toContain('<h1>');
      expect([json.status, json.json.error.reason]).toEqual([404, 'not_found']);
    },
  );
});
