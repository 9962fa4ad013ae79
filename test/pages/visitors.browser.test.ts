import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Site, startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { covering, isMatrixFull } from '../support/covering.ts';
import { startService, type TestService } from '../support/server.ts';

const fields = [
  { id: 'name', type: 'text' },
  { id: 'cv', type: 'file' },
  { id: 'note', type: 'text', page: 2 },
];

const withAndWithoutScript = [
  ['with script', true],
  ['without script', false],
] as const;

describe.skipIf(noBrowser)('who begins a session on a form’s own page', () => {
  let service: TestService;
  let browser: TestBrowser;
  let port: string;

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
    ({ port } = new URL(service.url));
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });
  afterEach(() => browser.expectNoProblems());

  /**
   * Where a page stands that posts to the service: on a foreign site or a sibling host, named to it by a referrer or not,
   * and whether the service is where browsers name sites, as they do with TLS and on loopback. A form that somebody may
   * embed accepts no more posts than others.
   */
  const attacks = covering({
    site: ['foreign', 'sibling'],
    isTrustworthy: [true, false],
    hasReferrer: [true, false],
    script: [true, false],
    isEmbeddable: [true, false],
  });

  it.each(attacks)(
    'can’t have others go on with it by a post of a $site site, trustworthy: $isTrustworthy, with a referrer: $hasReferrer, with script: $script, embeddable: $isEmbeddable',
    async ({ site: where, isTrustworthy, hasReferrer, script, isEmbeddable }) => {
      const { formId, attack } = await givenAttack(isEmbeddable ? ['https://partner.example'] : []);
      const onLoopback = where === 'sibling' ? 'forms.shop.localhost' : '127.0.0.1';
      const host = isTrustworthy ? onLoopback : 'forms.rebound.example';
      const evil = where === 'sibling' ? host.replace('forms', 'evil') : 'localhost';
      const address = `http://${host}:${port}/f/${formId}`;
      const head = hasReferrer ? '' : '<meta name="referrer" content="no-referrer">';
      await using site = await startSite(() => plantingSite(address, attack, head));

      const page = await browser.open(siteAt(site, evil), { javaScriptEnabled: script });
      for (const button of ['session', 'token']) {
        await page.goto(siteAt(site, evil));
        await page.click(`#${button}`);
        await typeIfThereIsAForm(page, script);
        await page.goto(`${address}?step=1`);
        await typeIfThereIsAForm(page, script);
      }

      expect(await readByAttacker(formId, attack)).not.toContain('of the victim');
      const kept = (await page.context().cookies(address)).map(({ value }) => value);
      expect(kept.join()).toMatch(/^sess_\w+/);
      expect(kept.join()).not.toContain(attack.id);
    },
  );

  it.each(withAndWithoutScript)('can’t do so from a sandboxed frame, %s', async (_, javaScriptEnabled) => {
    const { formId, attack } = await givenAttack();
    const address = `${service.url}/f/${formId}`;
    const inner = plantingSite(address, attack, '', '_top').replaceAll('"', '&quot;');
    await using site = await startSite(
      () => `<!doctype html><iframe sandbox="allow-forms allow-top-navigation" srcdoc="${inner}"></iframe>`,
    );
    const page = await browser.open(siteAt(site, 'localhost'), { javaScriptEnabled });

    await page.frameLocator('iframe').locator('#session').click();
    await page.waitForURL(address);
    await typeIfThereIsAForm(page, javaScriptEnabled);

    expect(await page.locator('h1').textContent()).toBe('Not accepted');
    expect(await readByAttacker(formId, attack)).not.toContain('of the victim');
    expect(await page.context().cookies(address)).toEqual([]);
  });

  it.each(withAndWithoutScript)(
    'goes on with it in a partner’s frame where the browser keeps no cookie, files included, %s',
    async (_, javaScriptEnabled) => {
      let formId = '';
      await using site = await startSite(
        () => `<!doctype html><title>Shop</title><iframe src="${service.url}/f/${formId}"></iframe>`,
      );
      const partner = siteAt(site, 'localhost');
      const settings = { allowPartial: true, embedOrigins: [new URL(partner).origin] };
      ({ id: formId } = await service.givenPublishedForm({ fields, settings }));
      const page = await browser.open(partner, { javaScriptEnabled });
      const frame = page.frameLocator('iframe');

      await frame.locator('[name=name]').fill('Ada');
      await frame.locator('[type=file]').setInputFiles(file);
      if (javaScriptEnabled) await frame.locator('.files button').waitFor();
      await frame.locator('button[value=forward]').click();
      await frame.locator('[name=note]').fill('Hello');
      await frame.locator('button[value=forward]').click();
      await frame.locator('.copy').waitFor();

      expect(await page.context().cookies()).toEqual([]);
      expect(await submissionsOf(formId)).toMatchObject([
        { name: 'Ada', cv: { filename: 'cv.txt' }, note: 'Hello' },
      ]);
    },
  );

  it('reads what was typed, and why it is refused, in a partner’s frame that has no origin', async () => {
    let formId = '';
    await using site = await startSite(
      () => `<!doctype html><title>Shop</title>
          <iframe sandbox="allow-forms" src="${service.url}/f/${formId}"></iframe>`,
    );
    const partner = siteAt(site, 'localhost');
    const settings = { embedOrigins: [new URL(partner).origin] };
    ({ id: formId } = await service.givenPublishedForm({ fields, settings }));
    const page = await browser.open(partner);
    const frame = page.frameLocator('iframe');

    await frame.locator('[name=name]').fill('Ada');
    await frame.locator('button[value=forward]').click();
    await frame.locator('h1', { hasText: 'Not accepted' }).waitFor();

    expect(await frame.locator('.copy').textContent()).toContain('Ada');
    expect(await submissionsOf(formId)).toEqual([]);
    // The sandbox blocks the page's script, which Chromium says.
    browser.problems.splice(0);
  });

  it.each(withAndWithoutScript)(
    'goes on with it at every address of the service, until the end, %s',
    async (_, javaScriptEnabled) => {
      // Browsers name sites at all but the last: without script one of those stands for the others.
      const hosts = ['localhost', 'forms.shop.localhost', '127.0.0.1', 'forms.rebound.example'];
      for (const host of javaScriptEnabled || isMatrixFull ? hosts : hosts.slice(-2)) {
        const { id } = await service.givenPublishedForm({ fields, settings: { allowPartial: true } });
        const address = `http://${host}:${port}/f/${id}`;
        const page = await browser.open(address, { javaScriptEnabled });

        await page.fill('[name=name]', 'Ada');
        await page.click('button[value=forward]');
        await page.fill('[name=note]', 'Hello');
        if (javaScriptEnabled) await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
        else await page.click('button[value=back]');
        await page.goto(`${address}?step=2`);
        expect(await page.inputValue('[name=note]')).toBe('Hello');
        await page.click('button[value=forward]');
        await page.waitForSelector('.copy');

        expect([host, await submissionsOf(id)]).toEqual([host, [{ name: 'Ada', note: 'Hello' }]]);
        expect(await page.context().cookies()).toEqual([]);
      }
    },
  );

  /** A form, and a session of it that somebody has begun without a browser, to read what others type there. */
  async function givenAttack(embedOrigins: string[] = []) {
    const settings = { allowPartial: true, embedOrigins };
    const { id: formId } = await service.givenPublishedForm({
      fields: fields.filter(({ type }) => type === 'text'),
      settings,
    });
    const address = `${service.url}/f/${formId}`;
    const [, issued = ''] = /name="_issued" value="([^"]+)"/.exec(await (await fetch(address)).text()) ?? [];
    const saved = await fetch(address, {
      method: 'POST',
      body: new URLSearchParams({ name: 'attacker', _issued: issued, _go: 'save' }),
      headers: { accept: 'application/json', origin: service.url },
    });
    const { session_id } = (await saved.json()) as { session_id: string };
    return { formId, attack: { id: session_id, issued } };
  }

  /** All that the attacker's session shows. */
  async function readByAttacker(formId: string, { id }: Attack): Promise<string> {
    const page = await fetch(`${service.url}/f/${formId}`, { headers: { cookie: `form_visit=${id}` } });
    const rows = await service.database.select('select partial_answers from sessions where id = $1', [id]);
    expect(rows).toHaveLength(1);
    return (await page.text()) + JSON.stringify(rows);
  }

  async function submissionsOf(formId: string) {
    const { submissions } = (await service.get(`/v1/forms/${formId}/submissions`)).json;
    return submissions.map(({ answers }: { answers: object }) => answers);
  }
});

/** Does what a person does who is shown a form. */
async function typeIfThereIsAForm(page: Page, hasScript: boolean): Promise<void> {
  const input = page.locator('input[name=name]:not([type=hidden])');
  if ((await input.count()) === 0) return;
  await input.fill('of the victim');
  if (hasScript) await page.locator('#status', { hasText: /^Saved$/ }).waitFor();
  else await page.click('button[value=forward]');
}

/** A page that posts the attacker's session, or the token of the page that has begun it. */
function plantingSite(address: string, { id, issued }: Attack, head: string, target = '_self'): string {
  const inputs = (named: object) =>
    Object.entries({ ...named, name: 'attacker', _remember: 'yes', _page: '1', _go: 'page:1' })
      .map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`)
      .join('');
  return `<!doctype html><title>Win</title>${head}
    <form method="post" action="${address}" target="${target}">${inputs({ _session: id, _issued: issued })}<button id="session">Win</button></form>
    <form method="post" action="${address}" target="${target}">${inputs({ _issued: issued })}<button id="token">Win</button></form>`;
}

/** The same site under another name. */
function siteAt({ origin }: Site, host: string): string {
  const url = new URL(origin);
  url.hostname = host;
  return url.href;
}

const file = { name: 'cv.txt', mimeType: 'text/plain', buffer: Buffer.from('text') };

type Attack = { id: string; issued: string };
