import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startMailServer } from '../support/mail-server.ts';
import { givenMailLink } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const noScript = { javaScriptEnabled: false };

describe.skipIf(noBrowser)('the link that confirms an owner', () => {
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

  /** Where mailed links lead: another address of the service has other cookies. */
  const atPublicAddress = (path: string) => new URL(path, service.url.replace('localhost', '127.0.0.1')).href;

  /** Activates a form in a browser, answers it, and waits for the confirmation. */
  async function givenActivated(options: BrowserContextOptions = {}) {
    const address = `${crypto.randomUUID()}@example.com`;
    const draft = await service.givenDraft({ fields: [{ id: 'name', type: 'text' }] });
    const page = await browser.open(atPublicAddress(draft.activate_url), options);
    await page.fill('[name=email]', address);
    await page.click('main form button');
    await service.post(`/api/forms/${draft.id}/submissions`, { answers: { name: 'Vera Stein' } });
    const link = await until(async () => {
      const mail = mailServer.mails.find(
        ({ recipients, text }) => recipients.includes(address) && text?.includes('/mail/confirm-owner'),
      );
      return /http\S+mail\/confirm-owner\S+/.exec(mail?.text ?? '')?.[0];
    });
    return { address, draft, page, link };
  }

  it.each([
    ['with script', {}],
    ['without script', noScript],
  ])('leads from the email to the first answer in three clicks, %s', async (name, options) => {
    const { address, draft, page, link } = await givenActivated(options);

    await page.goto(link); // The first click is in the email.
    await page.click('main button');

    await expect.poll(() => page.url()).toBe(atPublicAddress(`/owner/forms/${draft.id}#done`));
    expect(await page.textContent('.done')).toBe('Your address is confirmed, and you’re signed in.');
    await page.locator('.done:focus').waitFor();
    expect(await page.textContent('nav.owner')).toContain(address);
    if (name === 'with script') expect(await browser.audit(page)).toEqual([]);
    await page.click('tbody a');
    expect(await page.textContent('main')).toContain('Vera Stein');
    await page.goBack();
    await page.reload();
    expect(await page.locator('.done').count()).toBe(0);
    await browser.expectNoProblems();
  });

  it('only confirms in another browser than the one that activated, and fills in the address there', async () => {
    const { address, draft, link } = await givenActivated();
    const phone = await browser.open(link);

    await phone.click('main button');

    expect(await phone.textContent('h1')).toBe('Done');
    const { json } = await service.get(`/v1/forms/${draft.id}`);
    expect(json.form.owner_email).toBe(address);
    await phone.click('text=Sign in to your forms');
    expect(await phone.textContent('h1')).toBe('Sign in to your forms');
    expect(await phone.inputValue('[name=email]')).toBe(address);
    expect(await browser.audit(phone)).toEqual([]);
    await browser.expectNoProblems();
  });

  it.each([
    [59, '/owner/forms/'],
    [61, '/mail/'],
  ])('signs in for 60 minutes: %i minutes later it leads to %s', async (minutes, path) => {
    const { id, address, token } = await givenLink();
    const sent = `now() - interval '${minutes} minutes'`;
    await service.database.execute(`update mailed_links set created_at = ${sent} where form_id = $1`, [id]);
    const page = await browser.open(`/mail/${token}`);

    await page.click('main button');

    // Both pages that the button leads to say what is done; the one with the button does not.
    await page.waitForSelector('.done, #done');
    expect(new URL(page.url()).pathname.startsWith(path)).toBe(true);
    const sessions = await service.database.select('select 1 from owner_sessions where address = $1', [
      address,
    ]);
    expect(sessions).toHaveLength(minutes < 60 ? 1 : 0);
  });

  it('opens no session for a post of another site, or of a program, and confirms all the same', async () => {
    const origins = [undefined, 'null', 'https://evil.example'];
    for (const origin of origins) {
      const { id, address, token } = await givenLink();

      const reply = await fetch(new URL(`/mail/${token}`, service.url), {
        method: 'POST',
        redirect: 'manual',
        headers: origin === undefined ? {} : { origin },
      });

      expect([origin, reply.status]).toEqual([origin, 200]);
      expect(reply.headers.getSetCookie().filter((cookie) => cookie.startsWith('owner='))).toEqual([]);
      const [form] = await service.database.select(
        'select owner_confirmed_at is not null as confirmed from forms where id = $1',
        [id],
      );
      expect(form).toEqual({ confirmed: true });
      const sessions = await service.database.select('select 1 from owner_sessions where address = $1', [
        address,
      ]);
      expect(sessions).toEqual([]);
    }
  });

  it('signs in whoever takes a form over, and says when the activation link is used again that the form is active', async () => {
    const { draft, page } = await givenActivated();
    const next = `${crypto.randomUUID()}@example.com`;
    await service.post(`/v1/forms/${draft.id}/owner`, { email: next });
    const token = await givenMailLink(service.database, {
      purpose: 'change-owner',
      formId: draft.id,
      address: next,
    });

    const taker = await browser.open(`/mail/${token}`);
    await taker.click('main button');
    await page.goto(new URL(draft.activate_url, service.url).href);

    expect(await taker.textContent('nav.owner')).toContain(next);
    expect(await taker.textContent('tbody')).toContain('Vera Stein');
    expect(await page.textContent('h1')).toBe('This form is already active');
    expect(await browser.audit(page)).toEqual([]);
    await page.click('text=Open form');
    await expect.poll(() => page.url()).toContain(`/f/${draft.id}`);
    await browser.expectNoProblems();
  });

  /** A form whose owner was just mailed a link to confirm, which no browser asked for. */
  async function givenLink() {
    const address = `${crypto.randomUUID()}@example.com`;
    const { id, activate_url } = await service.givenDraft();
    await service.post(activate_url, { email: address });
    const token = await givenMailLink(service.database, { purpose: 'confirm-owner', formId: id, address });
    return { id, address, token };
  }
});
