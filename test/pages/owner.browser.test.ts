import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chooseLanguage } from '../../src/text/words.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { isMatrixFull } from '../support/covering.ts';
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

  /** Where mailed links lead, and whoever asks for one has a cookie that binds it to the browser. */
  const atPublicAddress = () => service.url.replace('localhost', '127.0.0.1');

  /** On a desk in the light, and on a phone in the dark. */
  async function auditInBothLooks(page: Page): Promise<string[]> {
    const problems = await browser.audit(page);
    const size = page.viewportSize() ?? PHONE.viewport;
    await page.setViewportSize(PHONE.viewport);
    await page.emulateMedia({ colorScheme: 'dark' });
    problems.push(...(await browser.audit(page)));
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: 'light' });
    return problems;
  }

  async function shot(page: Page, name: string): Promise<void> {
    if (process.env.SHOTS)
      writeFileSync(`${process.env.SHOTS}/${name}.png`, await page.screenshot({ fullPage: true }));
  }

  it('say of forms that are full or closed by their settings what can be done', async () => {
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
    const page = await openAs(address);
    const see = async (what: string) => {
      await shot(page, `closing-${what}`);
      return auditInBothLooks(page);
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

  // The pages are the same without script, which the walk through the links in mails takes.
  const walks = [
    ['with script', {}],
    ['without script, on a phone', { javaScriptEnabled: false, ...PHONE }],
  ] as const;

  it.each(walks.slice(0, isMatrixFull ? 2 : 1))(
    'lead from an address by a mail to answers, their files, and out again, in the browser alone that asked, %s',
    async (name, options) => {
      const audit = async (page: Page) => {
        if (name === 'with script') expect(await browser.audit(page)).toEqual([]);
      };
      const { address, ids, id: formId } = await givenForm();
      const page = await browser.open(`${atPublicAddress()}/owner`, options);
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
      const elsewhere = await browser.open(link, options);
      expect(await elsewhere.textContent('main')).toContain('This link was requested in another browser');
      await audit(elsewhere);
      await elsewhere.click('main button');
      expect(await elsewhere.textContent('h1')).toBe('Check your email');
      await page.goto(link);
      await page.check('text=Stay signed in');
      await audit(page);
      await see('link');
      await page.click('main button');
      await expect.poll(() => new URL(page.url()).pathname).toBe('/owner');
      expect(await page.textContent('main')).toContain('Where you are signed in');
      expect(await page.textContent('main')).toContain('Chrome');
      await audit(page);
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
      expect(await page.locator('thead th').allTextContents()).toEqual([
        'Received',
        'Your name',
        'Team',
        'CV',
      ]);
      await page.click('text=Choose columns');
      await page.check('[name=column][value=note]');
      await page.click('text=Show these columns');
      const headings = await page.locator('thead th').allTextContents();
      expect(headings).toEqual(['Received', 'Your name', 'Team', 'Note', 'CV']);
      await page.click('.tabs >> text=Share');
      await audit(page);
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
      await audit(page);
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
      await page.goto(`${atPublicAddress()}/owner`);
      expect(await page.textContent('h1')).toBe('Sign in to your forms');
      await browser.expectNoProblems();
    },
  );

  it('have no accessibility problem where something is refused or not there, and fit a phone', async () => {
    const { address, id, ids } = await givenForm();
    await givenForm();
    await service.database.execute(
      'update forms set owner_email = $2 where id <> $1 and owner_confirmed_at is null',
      [id, address],
    );
    const page = await openAs(address);
    const goTo = (path: string) => page.goto(new URL(`/owner${path}`, service.url).href);

    for (const path of [`/forms/${id}?status=spam`, '/forms/form_x', '/sign-in/x']) {
      await goTo(path);
      expect(await auditInBothLooks(page), path).toEqual([]);
    }
    await goTo(`/forms/${id}`);
    await page.evaluate("document.getElementById('text').maxLength = 999");
    await page.fill('[name=text]', 'x'.repeat(201));
    await page.click('.filter button');
    expect(await page.textContent('.error')).toContain('at most 200');
    expect(await auditInBothLooks(page)).toEqual([]);
    await shot(page, 'refused');
    await page.setViewportSize(PHONE.viewport);
    for (const path of [
      '',
      `/forms/${id}`,
      `/forms/${id}?status=spam`,
      `/forms/${id}/charts`,
      `/forms/${id}/settings`,
      `/submissions/${ids[0]}`,
      `/submissions/${ids[0]}/delete`,
    ]) {
      await goTo(path);
      const isCut =
        "[...document.querySelectorAll('.cards')].some((cards) => cards.scrollWidth > cards.clientWidth)";
      expect(await page.evaluate(isCut), path).toBe(false);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), path).toBe(true);
    }
    await goTo(`/forms/${id}`);
    await page.setViewportSize({ width: 320, height: 640 });
    const rows = "new Set([...document.querySelectorAll('.tabs a')].map(({ offsetTop }) => offsetTop)).size";
    expect(await page.evaluate(rows)).toBe(1);
    await page.context().clearCookies();
    await page.setViewportSize({ width: 1280, height: 720 });
    await goTo('');
    await page.fill('[name=email]', 'nobody');
    await page.click('main form button');
    expect(await auditInBothLooks(page)).toEqual([]);
    expect((await page.locator('main').boundingBox())?.width).toBeLessThanOrEqual(640);
    await browser.expectNoProblems();
  });

  it('tell which inputs of the owner’s site no field has', async () => {
    const { address, id } = await givenForm({ answers: 0 });
    const post = (inputs: Record<string, string>) =>
      service.post(`/api/forms/${id}/submissions`, new URLSearchParams(inputs), { key: null });
    await post({ name: 'Ada', submit: 'Send', '<img src=x>': 'secret value' });
    const page = await openAs(address);

    await until(async () => {
      await page.goto(`${service.url}/owner/forms/${id}`);
      return page.getByText('Answers without a field').first().isVisible();
    });

    const rows = await page.locator('table').last().locator('tbody tr').allInnerTexts();
    expect(rows.map((row) => row.split('\t').slice(0, 2))).toEqual([
      ['submit', '1'],
      ['<img src=x>', '1'],
    ]);
    expect(await page.content()).not.toContain('secret value');
    await shot(page, 'ignored');
    expect(await auditInBothLooks(page)).toEqual([]);
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

  it('let days begin at midnight of the reader, in the list, in the search and in the charts', async () => {
    const { address, id } = await givenForm({ answers: 1 });
    const dayIn = (timeZone: string) =>
      new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' }).format(Date.now());
    // At any time one of them is on another day than UTC.
    const zones = ['Pacific/Kiritimati', 'Pacific/Niue'];
    for (const timezoneId of zones.filter((zone) => dayIn(zone) !== dayIn('UTC'))) {
      const page = await openAs(address, { timezoneId });
      const day = dayIn(timezoneId);
      const listed = async (from: string, until: string, text = '') => {
        await page.goto(`${service.url}/owner/forms/${id}`);
        for (const [name, value] of Object.entries({ from, until, text })) await page.fill(`#${name}`, value);
        await page.click('main button >> text="Apply"');
        return page.locator('tbody tr').count();
      };

      expect(await listed(day, day)).toBe(1);
      expect(await listed(day, day, 'Ada')).toBe(1);
      expect(await listed(dayIn('UTC'), dayIn('UTC'))).toBe(0);
      await page.context().clearCookies({ name: 'owner-zone' });
      await page.goto(`${service.url}/owner/forms/${id}/charts`);
      await page.getByText(`Days in ${timezoneId}. Busiest day: 1.`).waitFor();
      expect(await browser.audit(page)).toEqual([]);
    }
    const page = await openAs(address, { javaScriptEnabled: false, timezoneId: 'Pacific/Niue' });
    await page.goto(`${service.url}/owner/forms/${id}/charts`);
    expect(await page.textContent('main')).toContain('Days in UTC. Busiest day: 1.');
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

  it.each(['ar', 'ja'])('fit a phone and run in the direction of the language, %s', async (locale) => {
    const { address, ids, id } = await givenForm();
    const page = await openAs(address, { locale, ...PHONE });
    const { direction } = chooseLanguage('', locale);

    for (const path of [
      `forms/${id}`,
      `forms/${id}/charts`,
      `forms/${id}/settings`,
      `submissions/${ids[0]}`,
    ]) {
      await page.goto(`${service.url}/owner/${path}`);
      await shot(page, `${locale}-${path.split('/').at(2) ?? path.split('/')[0]}`);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      if (!path.endsWith('charts')) continue;
      const flip = await page.evaluate('getComputedStyle(document.querySelector("svg.bar")).transform');
      expect(flip).toBe(direction === 'rtl' ? 'matrix(-1, 0, 0, 1, 0, 0)' : 'none');
    }
    await browser.expectNoProblems();
  });
});
