import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashSecret } from '../../src/domain/secrets/new-secrets.ts';
import { createOwnerPages } from '../../src/pages/owner/router.ts';
import { chooseLanguage } from '../../src/text/words.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startMailServer } from '../support/mail-server.ts';
import { givenSignInLink } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const PHONE = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' } as const;

describe.skipIf(noBrowser)('the owner’s pages', () => {
  let service: TestService;
  let browser: TestBrowser;
  let mailServer: Awaited<ReturnType<typeof startMailServer>>;

  beforeAll(async () => {
    mailServer = await startMailServer();
    service = await startService({ env: { SMTP_URL: mailServer.url } });
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    await mailServer?.[Symbol.asyncDispose]();
  });

  /** A form with some answers, and its owner’s address. */
  async function givenForm({ answers = 3, confirmed = true } = {}) {
    const address = `${crypto.randomUUID()}@example.com`;
    const { id, activate_url } = await service.givenDraft({
      name: 'Job application',
      fields: [
        { id: 'name', type: 'text', label: 'Your name' },
        {
          id: 'team',
          type: 'select',
          options: [
            { label: 'Engineering', value: 'eng' },
            { label: 'Design', value: 'des' },
          ],
        },
        { id: 'note', type: 'textarea' },
        { id: 'cv', type: 'file', label: 'CV' },
      ],
    });
    await service.post(activate_url, { email: address });
    if (confirmed)
      await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [id]);
    const form = new FormData();
    form.set('file', new File(['my life'], 'cv.txt'));
    const upload = (await service.post(`/api/forms/${id}/uploads?field=cv`, form)).json.upload;
    const ids: string[] = [];
    for (let n = 0; n < answers; n += 1) {
      const given = {
        name: `Ada ${n}`,
        team: n % 2 ? 'eng' : 'des',
        note: `<b>${'word '.repeat(40)}</b>`,
        ...(n === 0 && { cv: { upload_id: upload.upload_id } }),
      };
      ids.push((await service.post(`/api/forms/${id}/submissions`, { answers: given })).json.submission_id);
    }
    return { id, address, ids, uploadId: upload.upload_id };
  }

  const linkFor = async (address: string) =>
    `/owner/sign-in/${await givenSignInLink(service.database, address)}`;

  async function openAs(address: string, options: BrowserContextOptions = {}): Promise<Page> {
    const page = await browser.open(await linkFor(address), options);
    await page.click('main button');
    await page.waitForURL('**/owner');
    return page;
  }

  async function shot(page: Page, name: string): Promise<void> {
    if (process.env.SHOTS)
      writeFileSync(`${process.env.SHOTS}/${name}.png`, await page.screenshot({ fullPage: true }));
  }

  it('sign in by a link in the browser alone that asked for it at the same address', async () => {
    const { address } = await givenForm();
    const page = await browser.open(`${service.url.replace('localhost', '127.0.0.1')}/owner`);
    const before = mailServer.mails.length;
    await page.fill('[name=email]', address);
    await page.click('main form button');
    const mailed = () =>
      mailServer.mails
        .slice(before)
        .find(({ recipients, text }) => recipients.includes(address) && text?.includes('/owner/sign-in/'));
    await until(() => mailed() !== undefined);
    const [link = ''] = /http\S+owner\/sign-in\S+/.exec(mailed()?.text ?? '') ?? [];

    const elsewhere = await browser.open(link);
    expect(await elsewhere.textContent('main')).toContain('This link was requested in another browser');
    expect(await browser.audit(elsewhere)).toEqual([]);
    await elsewhere.click('main button');
    expect(await elsewhere.textContent('h1')).toBe('Check your email');
    await page.goto(link);
    await page.check('text=Stay signed in');
    expect(await browser.audit(page)).toEqual([]);
    await page.click('main button');
    expect(await page.textContent('main')).toContain('Where you are signed in');
    expect(await page.textContent('main')).toContain('Chrome');
    expect(await browser.audit(page)).toEqual([]);
  });

  it.each([
    ['on a desk', {}],
    ['on a phone', PHONE],
  ])('say of forms that are full or closed by their settings what can be done, %s', async (name, options) => {
    const address = `closing-${crypto.randomUUID()}@example.com`;
    const full = await service.givenPublishedForm({ name: 'Full form', settings: { maxSubmissions: 1 } });
    await service.post(`/api/forms/${full.id}/submissions`, { answers: { email: 'ada@example.com' } });
    const ended = await service.givenPublishedForm({
      name: 'Ended form',
      settings: { closesAt: '2026-03-01T12:00:00.000Z' },
    });
    await service.database.execute(
      'update forms set owner_email = $1, owner_confirmed_at = now() where id = any($2)',
      [address, [full.id, ended.id]],
    );
    const page = await openAs(address, options);
    const see = async (what: string) => {
      await shot(page, `${name.replaceAll(/\W+/g, '-')}-closing-${what}`);
      return browser.audit(page);
    };

    const listed = await page.locator('.forms li').allInnerTexts();
    const problems = await see('list');
    await page.click('text=Full form');
    const onPage = await page.innerText('main');
    problems.push(...(await see('full')));
    await page.click('text=Your forms');
    await page.click('text=Ended form');
    await page.click('text=Settings');
    const inSettings = await page.innerText('main');
    problems.push(...(await see('ended')));

    expect(listed).toEqual([
      expect.stringMatching(/^Ended form Closed since Mar 1, 2026\n[\s\S]*set a later closing time/),
      expect.stringMatching(/^Full form Full: 1 of 1\n[\s\S]*delete responses or set a higher maximum/),
    ]);
    expect(onPage).toContain('The form is full.');
    expect(inSettings).toContain('The form closed at the time in its settings.');
    expect(inSettings).not.toContain('Close form');
    expect(problems).toEqual([]);
  });

  it.each([
    ['with script', {}],
    ['without script, on a phone', { javaScriptEnabled: false, ...PHONE }],
  ])('lead from an address by a mail to answers, their files, and out again, %s', async (name, options) => {
    const { address, ids, id: formId } = await givenForm();
    const page = await browser.open('/owner', options);
    const see = async (what: string) => shot(page, `${name.replaceAll(/\W+/g, '-')}-${what}`);
    await see('sign-in');
    const before = mailServer.mails.length;

    await page.fill('[name=email]', address);
    await page.click('main form button');
    expect(await page.textContent('h1')).toBe('Check your email');
    await see('sent');
    await until(() =>
      mailServer.mails.slice(before).some(({ subject }) => subject === 'Sign in to your forms'),
    );
    const mail = mailServer.mails.findLast(({ subject }) => subject === 'Sign in to your forms');
    expect(mail?.recipients).toEqual([address]);
    const [link = ''] = /http\S+owner\/sign-in\S+/.exec(mail?.text ?? '') ?? [];
    await page.goto(link);
    await see('link');
    await page.click('main button');
    await expect.poll(() => new URL(page.url()).pathname).toBe('/owner');
    await see('forms');
    await page.click('text=Job application');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(3);
    await see('answers');

    await page.fill('[name=text]', 'engineer');
    await page.click('.filter button');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    expect(page.url()).not.toContain('engineer');
    await see('search');
    await page.fill('[name=text]', '');
    await page.click('.filter button');
    await page.click('tbody tr:last-child a');
    await expect.poll(() => page.url()).toContain(ids[0]);
    expect(await page.textContent('main')).toContain('<b>word');
    await see('answer');
    await page.click('text=Newer response');
    await expect.poll(() => page.url()).toContain(ids[1]);
    await page.click('text=Older response');
    await expect.poll(() => page.url()).toContain(ids[0]);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.click('text=cv.txt >> nth=-1'),
    ]);
    expect(download.suggestedFilename()).toBe('cv.txt');

    await page.click('text=Job application');
    expect(await page.textContent('.count p')).toBe('3 responses · 3 new');
    await page.click('text=Mark all as read');
    expect(await page.textContent('#done')).toBe('All responses are marked as read.');
    expect(await page.textContent('.count')).not.toContain('new');
    await page.click('text=Choose columns');
    await page.uncheck('[name=column][value=note]');
    await page.click('text=Show these columns');
    expect(await page.locator('thead th').allTextContents()).toEqual(['Received', 'Your name', 'Team', 'CV']);
    await page.click('text=Choose columns');
    await page.check('[name=column][value=note]');
    await page.click('text=Show these columns');
    const headings = await page.locator('thead th').allTextContents();
    expect(headings).toEqual(['Received', 'Your name', 'Team', 'Note', 'CV']);
    await page.click('.tabs >> text=Share');
    if (name === 'with script') expect(await browser.audit(page)).toEqual([]);
    await see('share');
    await page.click('text=Insights');
    expect(await page.textContent('main')).toContain('Design');
    await see('charts');
    await page.click('text=Settings');
    await page.click('text=Close form');
    expect(await page.textContent('.tag')).toMatch(/^Closed since [A-Z][a-z]{2} \d+, \d{4}$/);
    const refused = await service.post(`/api/forms/${formId}/submissions`, { answers: { name: 'Bob' } });
    expect([refused.status, refused.json.error.reason]).toEqual([410, 'closed']);
    await see('settings');
    await page.click('text=Reopen form');
    await page.click('text=Stop emails');
    await page.click('text=Start emails again');
    await page.fill('#recipient', 'bob');
    await page.click('text="Add"');
    expect(await page.textContent('.error')).toContain('email address');
    await page.fill('#recipient', 'bob@example.com');
    await page.click('text="Add"');
    expect(await page.textContent('.files')).toContain('Not confirmed yet');
    await page.fill('#new-owner', 'eve@example.com');
    await page.click('text=Send transfer request');
    expect(await page.textContent('main')).toContain('eve@example.com hasn’t accepted the transfer yet.');
    if (name === 'with script') expect(await browser.audit(page)).toEqual([]);
    await see('people');
    await page.click('[aria-label="Remove bob@example.com"]');
    await page.click('.tabs >> text=Responses');
    await page.click('tbody tr:last-child a');

    await page.click('text=Delete response');
    await see('delete');
    await page.click('text="Cancel"');
    await page.click('text=Delete response');
    await page.click('main .actions button');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2);
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('text=CSV')]);
    expect(file.suggestedFilename()).toMatch(/^job-application-\d{4}-\d\d-\d\d\.csv$/);

    await page.click('text=Sign out >> nth=0');
    await page.goto(new URL('/owner', service.url).href);
    expect(await page.textContent('h1')).toBe('Sign in to your forms');
    await browser.expectNoProblems();
  });

  it.each([
    ['light', {}],
    ['dark, on a phone', PHONE],
  ])('have no accessibility problem, %s', async (name, options) => {
    const { address, id, ids } = await givenForm();
    await givenForm();
    await service.database.execute(
      'update forms set owner_email = $2 where id <> $1 and owner_confirmed_at is null',
      [id, address],
    );
    const page = await openAs(address, options);
    const paths = [
      '',
      `/forms/${id}`,
      `/forms/${id}?status=spam`,
      `/forms/${id}/charts`,
      `/forms/${id}/settings`,
      `/submissions/${ids[0]}`,
      `/submissions/${ids[0]}/delete`,
      '/forms/form_x',
      '/sign-in/x',
    ];

    for (const path of paths) {
      await page.goto(new URL(`/owner${path}`, service.url).href);
      expect(await browser.audit(page), path).toEqual([]);
      const isCut =
        "[...document.querySelectorAll('.cards')].some((cards) => cards.scrollWidth > cards.clientWidth)";
      if (name !== 'light') expect(await page.evaluate(isCut), path).toBe(false);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), path).toBe(true);
    }
    await page.goto(new URL(`/owner/forms/${id}`, service.url).href);
    await page.setViewportSize({ width: 320, height: 640 });
    const rows = "new Set([...document.querySelectorAll('.tabs a')].map(({ offsetTop }) => offsetTop)).size";
    expect(await page.evaluate(rows)).toBe(1);
    await page.evaluate("document.getElementById('text').maxLength = 999");
    await page.fill('[name=text]', 'x'.repeat(201));
    await page.click('.filter button');
    expect(await page.textContent('.error')).toContain('at most 200');
    expect(await browser.audit(page)).toEqual([]);
    await shot(page, `${name.replaceAll(/\W+/g, '-')}-refused`);
    await page.context().clearCookies();
    await page.goto(new URL('/owner', service.url).href);
    await page.fill('[name=email]', 'nobody');
    await page.click('main form button');
    expect(await browser.audit(page)).toEqual([]);
    expect((await page.locator('main').boundingBox())?.width).toBeLessThanOrEqual(640);
    await browser.expectNoProblems();
  });

  it('lead to newer and older pages of answers, and show pictures and the times of the reader in place', async () => {
    const { address, id } = await givenForm({ answers: 0 });
    const png = await readFile(new URL('../../docs/screenshots/form-desktop.png', import.meta.url));
    const upload = new FormData();
    upload.set('file', new File([png], 'face.png'));
    const { upload_id } = (await service.post(`/api/forms/${id}/uploads?field=cv`, upload)).json.upload;
    for (let n = 0; n < 45; n += 1) {
      const answers = { name: `Ada ${n}`, ...(n === 44 && { cv: { upload_id } }) };
      await service.post(`/api/forms/${id}/submissions`, { answers });
    }
    const page = await openAs(address, { timezoneId: 'Asia/Kathmandu' });
    await page.goto(`${service.url}/owner/forms/${id}`);
    const first = () => page.textContent('tbody td >> nth=0');

    await page.click('main >> text="Older"');
    await page.click('main >> text="Older"');
    expect(await first()).toBe('Ada 4');
    expect(await page.getByText('Mark all as read').count()).toBe(0);
    await page.click('main >> text="Newer"');
    expect(await first()).toBe('Ada 24');
    await page.click('main >> text="Newer"');
    expect(await first()).toBe('Ada 44');
    const time = await page.evaluate("document.querySelector('td, tbody th time').title");
    await page.click('tbody th a >> nth=0');

    expect(time).toMatch(/UTC$/);
    expect(await page.getAttribute('h1 time', 'title')).toBe(time);
    expect(await page.textContent('h1')).toMatch(/^Response from .* (?:AM|PM)$/);
    const width =
      "document.querySelector('dl img[alt=CV]').decode().then(() => document.querySelector('dl img').naturalWidth)";
    expect(await page.evaluate(width)).toBeGreaterThan(0);
    expect(await browser.audit(page)).toEqual([]);
    await page.click('text="Delete response"');
    expect(await page.textContent('.lead time')).toMatch(/(?:AM|PM)$/);
    await page.click('text="Your forms"');
    expect(await page.locator('main time').allTextContents()).toEqual(
      Array(2).fill(expect.stringMatching(/(?:AM|PM)$/)),
    );
    await browser.expectNoProblems();
  });

  it('hand a form over by an email that names who asks, take it back, and tell both once it is done', async () => {
    const { address, id } = await givenForm({ answers: 0 });
    const next = `next-${crypto.randomUUID()}@example.com`;
    const mailsTo = (to: string, text: string) =>
      mailServer.mails.filter((mail) => mail.recipients.includes(to) && mail.text?.includes(text));
    const page = await openAs(address);
    const offer = async () => {
      await page.goto(`${service.url}/owner/forms/${id}/settings`);
      await page.fill('#new-owner', next);
      await page.click('text=Send transfer request');
    };

    await page.goto(`${service.url}/owner/forms/${id}/settings`);
    await page.fill('#recipient', address);
    await page.click('text="Add"');
    expect(await page.textContent('.error')).toContain('You already get these.');
    await offer();
    await until(() => mailsTo(next, `${address} asks you to become the owner`).length === 1);
    const [first] = mailsTo(next, 'asks you');
    const [link = ''] = /http\S+\/mail\/\S+/.exec(first?.text ?? '') ?? [];
    expect(await page.textContent('#done')).toBe('The transfer request is sent.');
    await page.click('text=Withdraw the request');
    expect(await page.textContent('#done')).toBe('The transfer request is withdrawn.');
    expect(await browser.audit(page)).toEqual([]);
    const other = await browser.open(link);
    expect(await other.textContent('h1')).not.toBe('Take over a form');

    await offer();
    await until(() => mailsTo(next, 'asks you').length === 2);
    const [again = ''] = /http\S+\/mail\/\S+/.exec(mailsTo(next, 'asks you')[1]?.text ?? '') ?? [];
    await other.goto(again);
    await other.click('text=Become the owner');
    expect(await other.textContent('.done')).toBe('You now own this form, and you’re signed in.');
    await until(
      () => mailsTo(next, 'You’re now the owner').length + mailsTo(address, 'has a new owner').length === 2,
    );
    expect(mailsTo(next, 'has a new owner')).toEqual([]);
    expect(mailsTo(next, `/owner/forms/${id}`)).toHaveLength(1);
  });

  it.each([
    ['with script', { timezoneId: 'America/New_York' }, '2027-05-04T14:30:00.000Z'],
    [
      'without script, on a phone',
      { javaScriptEnabled: false, ...PHONE, viewport: { width: 320, height: 640 } },
      '2027-05-04T10:30:00.000Z',
    ],
  ])(
    'change texts and limits by a preview, and delete the form by its name, %s',
    async (name, options, closesAt) => {
      const { address, id } = await givenForm({ answers: 1 });
      const page = await openAs(address, options);
      const settled = async (what: string) => {
        await shot(page, `${name.replaceAll(/\W+/g, '-')}-texts-${what}`);
        if (name === 'with script') expect(await browser.audit(page), what).toEqual([]);
        if (name === 'with script') return;
        const body = await page.locator('body').boundingBox();
        expect(body?.width, what).toBeLessThanOrEqual(320);
      };
      const definitionIn = async () => (await service.get(`/v1/forms/${id}`)).json.form.definition;
      const before = await definitionIn();

      await page.goto(`${service.url}/owner/forms/${id}/settings`);
      await page.click('text=Edit texts and limits');
      await settled('edit');
      await page.fill('[name=name]', '');
      await page.fill('[name="settings.maxSubmissions"]', 'many');
      await page.click('main button[value=preview]');
      expect(await page.locator('.summary li').count()).toBe(2);
      await settled('refused');
      await page.fill('[name=name]', 'Work with us');
      await page.fill('[name="label.name"]', 'Your full name');
      await page.fill('[name="help.note"]', 'A few words');
      await page.fill('[name="options.team.eng"]', 'Engineers');
      await page.fill('[name="settings.maxSubmissions"]', '40');
      await page.fill('[name="settings.closesAt"]', '2027-05-04T10:30');
      await page.fill('[name="settings.successMessage"]', 'Thank you!');
      await page.click('main button[value=preview]');
      const preview = page.frameLocator('iframe');
      await preview.getByText('Your full name').waitFor();
      expect(await preview.locator('main').textContent()).toMatch(/Work with us.*Engineers.*A few words/s);
      expect(await definitionIn()).toEqual(before);
      await settled('preview');
      await page.click('text=Back to editing');
      expect(await page.inputValue('[name="label.name"]')).toBe('Your full name');
      expect(await page.inputValue('[name="settings.closesAt"]')).toBe('2027-05-04T10:30');
      expect(await page.textContent('.hint')).toBe(
        `Time zone: ${name === 'with script' ? 'America/New_York' : 'UTC'}`,
      );
      await page.click('main button[value=preview]');
      // Somebody else publishes meanwhile: nothing of theirs is lost unseen.
      await service.post(`/v1/forms/${id}/versions`, { ...before, description: 'Theirs' });
      await page.click('text="Publish"');
      expect(await page.textContent('.summary')).toContain('changed in the meantime');
      await page.click('main button[value=preview]');
      await page.click('text="Publish"');
      expect(await page.textContent('#done')).toBe('The new texts and limits are published.');
      expect(await definitionIn()).toMatchObject({
        name: 'Work with us',
        delivery: before.delivery,
        fields: [
          { label: 'Your full name' },
          { options: [{ label: 'Engineers', value: 'eng' }, {}] },
          { description: 'A few words' },
          {},
        ],
        settings: { maxSubmissions: 40, closesAt, successMessage: 'Thank you!' },
      });

      await page.click('text=Delete form');
      await page.fill('#name', 'Job application');
      await page.click('main button.danger');
      expect(await page.textContent('.error')).toContain('as it is written above');
      await settled('delete');
      await page.fill('#name', 'Work with us');
      await page.click('main button.danger');
      expect(await page.textContent('#done')).toBe('The form is deleted.');
      expect((await service.get(`/v1/forms/${id}`)).status).toBe(404);
      await browser.expectNoProblems();
    },
  );

  it('preview each step of a form as its page shows it', async () => {
    const { address, id } = await givenForm({ answers: 0 });
    const { definition } = (await service.get(`/v1/forms/${id}`)).json.form;
    const [first, ...others] = definition.fields;
    const fields = [first, ...others.map((field: object) => ({ ...field, page: 2 }))];
    await service.post(`/v1/forms/${id}/versions`, { ...definition, fields });
    const page = await openAs(address, { javaScriptEnabled: false });

    await page.goto(`${service.url}/owner/forms/${id}/texts`);
    await page.fill('[name="options.team.eng"]', 'Engineers');
    await page.click('main button[value=preview]');
    const preview = page.frameLocator('iframe');
    await preview.getByText('Step 1 of 2').waitFor();
    expect(await preview.locator('main').textContent()).not.toContain('Engineers');
    await page.click('.steps button[value="2"]');
    await preview.locator('option', { hasText: 'Engineers' }).waitFor({ state: 'attached' });

    expect(await page.getAttribute('iframe', 'sandbox')).toBe('');
    expect((await service.get(`/v1/forms/${id}`)).json.form.definition.fields).toMatchObject(fields);
    await browser.expectNoProblems();
  });

  it('lead to the first response by the link of the form and its QR code', async () => {
    const { address, id } = await givenForm({ answers: 0 });
    const page = await openAs(address);

    for (const path of ['', '/charts']) {
      await page.goto(`${service.url}/owner/forms/${id}${path}`);
      expect(await page.textContent('.snippet code'), path).toMatch(new RegExp(`/f/${id}$`));
      expect(await page.locator('img.qr').isVisible(), path).toBe(true);
      expect(await page.locator('form.filter').count(), path).toBe(0);
      expect(await browser.audit(page), path).toEqual([]);
    }
    await page.click('text=More ways to share');

    expect(new URL(page.url()).pathname).toBe(`/owner/forms/${id}/share`);
    await browser.expectNoProblems();
  });

  it('copy where a form is to be found, by a script that leaves the forms of the page alone', async () => {
    const { id, address } = await givenForm({ answers: 0 });
    const page = await openAs(address, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.goto(`${service.url}/owner/forms/${id}/share`);

    await page.click('button[data-copy]');
    await page.locator('button', { hasText: 'Copied' }).waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    await page.click('text=Settings');
    await page.click('text=Stop emails');
    await page.waitForSelector('text=You don’t get emails about this form.');

    expect(copied).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/f/${id}$`));
    await browser.expectNoProblems();
  });

  it.each(['de-AT', 'ar', 'ja'])('are in the language of the reader, %s', async (locale) => {
    const before = Date.now();
    const { address, ids, id } = await givenForm();
    const made = [before, Date.now()];
    const page = await openAs(address, { locale, ...(locale === 'ar' && PHONE) });
    const { tag, direction, owner } = chooseLanguage('', locale);

    expect(await page.textContent('h1')).toBe(owner.title);
    expect(await page.getAttribute('html', 'lang')).toBe(tag);
    expect(await page.getAttribute('html', 'dir')).toBe(direction);
    const paths = [`forms/${id}`, `forms/${id}/charts`, `forms/${id}/settings`, `submissions/${ids[0]}`];
    for (const path of paths) {
      await page.goto(`${service.url}/owner/${path}`);
      await shot(page, `${locale}-${path.split('/').at(2) ?? path.split('/')[0]}`);
      expect(await browser.audit(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      if (!path.endsWith('charts')) continue;
      const flip = await page.evaluate('getComputedStyle(document.querySelector("svg.bar")).transform');
      expect(flip).toBe(direction === 'rtl' ? 'matrix(-1, 0, 0, 1, 0, 0)' : 'none');
    }
    // Two at most, at the turn of a year.
    const format = new Intl.DateTimeFormat(tag, { year: 'numeric', timeZone: 'UTC' });
    const years = new Set(made.map((time) => format.format(time)));
    const title = await page.textContent('h1');
    expect([...years].filter((year) => title?.includes(year))).toHaveLength(1);
    await browser.expectNoProblems();
  });

  it('go on, after signing in, to the answer that a mail has led to', async () => {
    const { address, ids } = await givenForm();
    const mail = await until(() =>
      mailServer.mails.find(
        ({ recipients, text }) => recipients.includes(address) && text?.includes(ids[0] ?? ''),
      ),
    );
    const [link = ''] = /http\S+\/owner\/submissions\/\S+/.exec(mail.text ?? '') ?? [];

    const page = await browser.open(link);
    expect(await page.textContent('h1')).toBe('Sign in to your forms');
    await page.goto(new URL(await linkFor(address), link).href);
    await page.click('main button');

    await expect.poll(() => page.url()).toBe(link);
    expect(await page.textContent('main')).toContain('Ada 0');
    await browser.expectNoProblems();
  });
});

describe('the owner’s routes', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const send = (method: string, path: string, { cookie, origin, body }: Sent = {}) =>
    fetch(new URL(`/owner${path}`, service.url), {
      method,
      redirect: 'manual',
      headers: { ...(cookie && { cookie }), ...(origin && { origin }) },
      ...(body && { body: new URLSearchParams(body) }),
    });
  const linkFor = (address: string) => givenSignInLink(service.database, address);

  async function givenOwner() {
    const address = `${crypto.randomUUID()}@example.com`;
    const { id, activate_url } = await service.givenDraft({ fields: [{ id: 'cv', type: 'file' }] });
    await service.post(activate_url, { email: address });
    await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [id]);
    const file = new FormData();
    file.set('file', new File(['my life'], 'cv.html'));
    const { upload_id: uploadId } = (await service.post(`/api/forms/${id}/uploads?field=cv`, file)).json
      .upload;
    const answers = { cv: { upload_id: uploadId } };
    const submissionId = (await service.post(`/api/forms/${id}/submissions`, { answers })).json.submission_id;
    const opened = await send('POST', `/sign-in/${await linkFor(address)}`, { origin: service.url });
    const cookie = sessionIn(opened);
    const page = await (await send('GET', `/forms/${id}`, { cookie })).text();
    const csrf = /name="csrf" value="([\w-]+)"/.exec(page)?.[1] ?? '';
    return { address, id, uploadId, submissionId, cookie, csrf };
  }

  it('set a cookie that scripts and other sites can’t use, and no page is kept', async () => {
    const link = await linkFor('ada@example.com');
    const shown = await send('GET', `/sign-in/${link}`);
    const again = await send('GET', `/sign-in/${link}`);
    const opened = await send('POST', `/sign-in/${link}`, { origin: service.url });
    const used = await send('POST', `/sign-in/${link}`, { origin: service.url });

    expect([shown.status, again.status, opened.status, used.status]).toEqual([200, 200, 303, 401]);
    const [browserCookie, cookie, device] = opened.headers.getSetCookie();
    expect(browserCookie).toMatch(
      /^owner-browser=\w{43}; Max-Age=31536000; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
    );
    expect(cookie).toMatch(/^owner=own_[^;]+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/);
    expect(device).toMatch(
      /^owner-device=[^;]+; Max-Age=31536000; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
    );
    for (const reply of [shown, opened, used]) expect(reply.headers.get('cache-control')).toBe('no-store');
    const policy = shown.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'; style-src 'self'; script-src 'self'");
    expect(policy).toContain("form-action 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(await shown.text()).not.toMatch(/<script|style=|onclick/);
  });

  it('give the same answer to every address, and refuse what is none', async () => {
    const { address } = await givenOwner();
    const ask = async (email: string) => {
      const reply = await send('POST', '/sign-in', { origin: service.url, body: { email } });
      return [reply.status, (await reply.text()).replaceAll(email, '')];
    };

    expect(await ask(address)).toEqual(await ask('nobody@example.com'));
    expect((await ask('nobody'))[0]).toBe(422);
  });

  it('refuse posts from other origins, without an origin, and without the token of the session', async () => {
    const { submissionId, id, cookie, csrf } = await givenOwner();
    const other = await givenOwner();
    const body = { csrf };
    const refused: Sent[] = [
      { cookie, body },
      { cookie, body, origin: 'null' },
      { cookie, body, origin: 'https://evil.example' },
      { cookie, body: {}, origin: service.url },
      { cookie, body: { csrf: other.csrf }, origin: service.url },
    ];

    for (const path of [`/submissions/${submissionId}/delete`, '/sign-out', `/forms/${id}/export`])
      for (const sent of refused) expect((await send('POST', path, sent)).status, path).toBe(401);
    for (const origin of [undefined, 'null', 'https://evil.example']) {
      const body = { email: 'ada@example.com' };
      expect((await send('POST', '/sign-in', { body, ...(origin && { origin }) })).status).toBe(401);
      const link = `/sign-in/${await linkFor('ada@example.com')}`;
      expect((await send('POST', link, { ...(origin && { origin }) })).status).toBe(401);
    }
    expect((await send('GET', `/submissions/${submissionId}`, { cookie })).status).toBe(200);
    expect(
      (await send('POST', `/submissions/${submissionId}/delete`, { cookie, body, origin: service.url }))
        .status,
    ).toBe(303);
    expect((await send('GET', `/submissions/${submissionId}`, { cookie })).status).toBe(404);
  });

  it('show an owner nothing of another’s, nor anything to who is not signed in', async () => {
    const own = await givenOwner();
    const other = await givenOwner();
    const { cookie, csrf } = own;
    const gets = [
      `/forms/${other.id}`,
      `/forms/${other.id}/charts`,
      `/forms/${other.id}/settings`,
      `/submissions/${other.submissionId}`,
      `/submissions/${other.submissionId}/delete`,
      `/files/${other.uploadId}`,
    ];
    const posts = [
      `/forms/${other.id}/search`,
      `/forms/${other.id}/export`,
      `/forms/${other.id}/close`,
      `/forms/${other.id}/reopen`,
      `/forms/${other.id}/mails`,
      `/forms/${other.id}/recipients`,
      `/forms/${other.id}/recipients/remove`,
      `/forms/${other.id}/hand-over`,
      `/forms/${other.id}/confirm`,
      `/submissions/${other.submissionId}/delete`,
    ];
    const body = { csrf, text: 'a', format: 'csv', email: 'mine@example.com' };

    for (const path of gets) {
      expect((await send('GET', path, { cookie })).status, path).toBe(404);
      expect((await send('GET', path, { cookie: other.cookie })).status, path).toBe(200);
      for (const given of [undefined, 'owner=own_x', `owner=${service.key}`])
        expect((await send('GET', path, { ...(given && { cookie: given }) })).status, path).toBe(401);
    }
    for (const path of posts) {
      expect((await send('POST', path, { cookie, body, origin: service.url })).status, path).toBe(404);
      expect((await send('POST', path, { body, origin: service.url })).status, path).toBe(401);
      expect((await send('GET', path, { cookie: other.cookie })).status, path).toBe(
        path.endsWith('/delete') ? 200 : 404,
      );
    }
    expect(await (await send('GET', '', { cookie })).text()).not.toContain(other.id);
    expect((await send('GET', `/submissions/${other.submissionId}`, { cookie: other.cookie })).status).toBe(
      200,
    );
  });

  it('refuse, on every one, posts of other sites and sessions of others, and change nothing by GET', async () => {
    const { id, submissionId, uploadId, cookie, csrf, address } = await givenOwner();
    const [stranger, ended] = [await givenOwner(), await givenOwner()];
    await send('POST', '/sign-out', {
      cookie: ended.cookie,
      origin: service.url,
      body: { csrf: ended.csrf },
    });
    const state = async () => [
      await service.database.select('select * from forms where id = $1', [id]),
      await service.database.select('select id from submissions where form_id = $1', [id]),
      await service.database.select('select * from owner_sessions where address = $1', [address]),
      await service.database.select('select * from mail_recipients where form_id = $1', [id]),
      await service.database.select('select * from mail_stops where address = $1', [address]),
    ];
    const before = await state();
    const ids: Record<string, string> = { forms: id, submissions: submissionId, files: uploadId };
    const session = hashSecret(decodeURIComponent(cookie.slice('owner='.length)));
    const inputs = { csrf, email: 'mine@example.com', text: 'a', format: 'csv', stop: 'yes', session };
    const { url: origin } = service;

    for (const { method, path: pattern } of routesOfSession()) {
      const path = pattern.replace('/owner', '').replace(':id', ids[pattern.split('/')[2] ?? ''] ?? '');
      const others = [undefined, 'owner=own_x', `owner=${service.key}`, ended.cookie];
      if (method === 'get') {
        if (path !== '') expect((await send('GET', path, stranger)).status, path).toBe(404);
        expect((await send('GET', path, { cookie })).status, path).toBe(200);
        for (const other of others)
          expect((await send('GET', path, { ...(other && { cookie: other }) })).status, path).toBe(
            path === '' ? 200 : 401,
          );
        continue;
      }
      const refused: Sent[] = [
        { cookie, body: inputs },
        { cookie, body: inputs, origin: 'null' },
        { cookie, body: inputs, origin: 'https://evil.example' },
        { cookie, body: { ...inputs, csrf: '' }, origin },
        { cookie, body: { ...inputs, csrf: stranger.csrf }, origin },
        { cookie: `${cookie}x`, body: inputs, origin },
        ...others.map((other) => ({ ...(other && { cookie: other }), body: inputs, origin })),
      ];
      for (const sent of refused) expect((await send('POST', path, sent)).status, path).toBe(401);
      if (path !== '/sign-out') {
        const body = { ...inputs, csrf: stranger.csrf };
        // To end a session of another is to end none.
        expect((await send('POST', path, { cookie: stranger.cookie, body, origin })).status, path).toBe(
          path === '/sessions/end' ? 303 : 404,
        );
      }
      await send('GET', path, { cookie });
    }

    expect(routesOfSession().length).toBeGreaterThanOrEqual(18);
    expect(await state()).toEqual(before);
  });

  it('send files as downloads that run nothing', async () => {
    const { uploadId, cookie } = await givenOwner();

    const { headers } = await send('GET', `/files/${uploadId}`, { cookie });

    expect(headers.get('content-disposition')).toBe('attachment; filename=cv.html');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain('sandbox');
  });

  it('ask to sign in once a session has ended, and forget its cookie', async () => {
    const { cookie, csrf, id } = await givenOwner();

    const signOut = { cookie, origin: service.url, body: { csrf, everywhere: 'yes' } };
    const signedOut = await send('POST', '/sign-out', signOut);
    const after = await send('GET', `/forms/${id}`, { cookie });

    // What people have typed into forms by the same origin stays.
    expect([signedOut.status, signedOut.headers.get('clear-site-data')]).toEqual([200, '"cache"']);
    expect(after.status).toBe(401);
    expect(after.headers.getSetCookie().join()).toMatch(/owner=; Path=\/; Expires=Thu, 01 Jan 1970/);
  });

  it('ask to sign in again to delete what is open for long, and lead back after it', async () => {
    const { address, submissionId, cookie, csrf } = await givenOwner();
    await service.database.execute(
      "update owner_sessions set created_at = now() - interval '16 minutes' where address = $1",
      [address],
    );
    const body = { csrf };

    const asked = await send('POST', `/submissions/${submissionId}/delete`, {
      cookie,
      body,
      origin: service.url,
    });

    expect(asked.status).toBe(401);
    expect(await asked.text()).toContain('You signed in more than 15 minutes ago');
    expect(asked.headers.getSetCookie().join()).toContain(
      encodeURIComponent(`/owner/submissions/${submissionId}`),
    );
    expect((await send('GET', `/submissions/${submissionId}`, { cookie })).status).toBe(200);
  });

  it('send cookies over https alone where the service is at https', async () => {
    await using secure = await startService({ env: { BASE_URL: 'https://forms.example' } });
    const link = await givenSignInLink(secure.database, 'ada@example.com');
    const url = new URL(`/owner/sign-in/${link}`, secure.url);

    const { headers } = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: 'https://forms.example' },
    });

    const cookies = headers.getSetCookie();
    expect(cookies[1]).toMatch(
      /^__Host-owner=own_[^;]+; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/,
    );
    for (const cookie of cookies.slice(0, 3))
      expect(cookie).toMatch(/^__Host-owner.*; Path=\/; .*; Secure; /);
  });
});

/** The cookie that a reply signs in with. */
function sessionIn({ headers }: Response): string {
  const set = headers.getSetCookie().find((line) => line.startsWith('owner='));
  return set?.split(';')[0] ?? '';
}

/** The routes that need an owner's session, as the router has them, so that one that is added is tried as well. */
function routesOfSession(): { method: string; path: string }[] {
  const baseUrl = 'http://localhost';
  const router = createOwnerPages({ baseUrl, hostedUrl: baseUrl } as never);
  return router.stack
    .flatMap(({ route }) => (route === undefined ? [] : [route]))
    .filter(({ path }) => !path.startsWith('/owner/sign-in'))
    .flatMap(({ path, stack }) => stack.map(({ method }) => ({ method, path })))
    .filter(({ method }) => method === 'get' || method === 'post');
}

type Sent = { cookie?: string; origin?: string; body?: Record<string, string> };
