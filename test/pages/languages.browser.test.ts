import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { answersOf, givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { contactForm, startService, type TestService } from '../support/server.ts';

const definition = {
  name: 'Survey',
  description: 'About you',
  fields: [
    { id: 'name', type: 'text', label: 'Your name', required: true },
    {
      id: 'size',
      type: 'radio',
      label: 'Size',
      options: [
        { label: 'Small', value: 's' },
        { label: 'Large', value: 'l' },
      ],
    },
    { id: 'why', type: 'text', label: 'Why', page: 2, pattern: 'b.*', patternMessage: 'Begin with b' },
  ],
  pages: [{ title: 'First' }, { title: 'Then' }],
  settings: { locale: 'en', submitLabel: 'Send it', successMessage: 'Thanks a lot', allowPartial: true },
  translations: {
    de: {
      name: 'Umfrage',
      description: 'Über Sie',
      fields: {
        name: { label: 'Ihr Name' },
        size: { label: 'Größe', options: { s: 'Klein', l: 'Groß' } },
        why: { label: 'Warum', patternMessage: 'Beginnen Sie mit b' },
      },
      pages: [{ title: 'Zuerst' }, { title: 'Dann' }],
      settings: { submitLabel: 'Abschicken', successMessage: 'Vielen Dank' },
    },
    ar: { name: 'استبيان', fields: { name: { label: 'اسمك' } } },
  },
};

describe('a form in several languages', () => {
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    service = await startService();
    if (!noBrowser) browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  it('is described in the one that is asked for, by REST and by RPC', async () => {
    const form = await service.givenPublishedForm(definition);
    const { session } = (await service.post(`/v1/forms/${form.id}/sessions`, {})).json;
    const headers = { 'accept-language': 'de-CH, en;q=0.5' };
    const read = (path: string) => service.get(path, { headers });
    const forms = service.client(FormsService);

    const whole = await read(`/v1/forms/${form.id}/agent-schema`);
    const own = await service.get(`/v1/forms/${form.id}/agent-schema`, {
      headers: { 'accept-language': 'fr' },
    });
    const brief = (await read(`/v1/forms/${form.id}/agent-schema?brief=true`)).json;
    const left = (await read(`/v1/sessions/${session.id}/agent-schema`)).json;
    const asked = { language: 'de' };
    const { schema } = await forms.getAgentSchema({ formId: form.id, ...asked });
    const ofSession = await service
      .client(SessionsService)
      .getSessionAgentSchema({ sessionId: session.id, ...asked });

    expect(whole.headers.get('vary')).toMatch(/accept-language/i);
    expect(whole.json).toMatchObject({
      form: { name: 'Umfrage', description: 'Über Sie' },
      fields: [{ label: 'Ihr Name' }, { options: [{ label: 'Klein', value: 's' }, {}] }, {}],
      settings: { locale: 'de' },
      json_schema: { title: 'Umfrage', properties: { name: { title: 'Ihr Name' } } },
    });
    expect(own.json).toMatchObject({ form: { name: 'Survey' }, settings: { locale: 'en' } });
    expect(brief.questions).toEqual([
      'name (required): Ihr Name',
      'size: Größe. Options: s = Klein, l = Groß',
      'why: Warum',
    ]);
    expect(left.questions).toEqual(brief.questions);
    expect(schema?.questions.map(({ text }) => text)).toEqual(brief.questions);
    expect(ofSession.schema?.name).toBe('Umfrage');
  });

  it('says what its translations lack when it is checked, made, published and read', async () => {
    const lacking = [
      {
        language: 'ar',
        paths: [
          'description',
          'fields.size.label',
          'fields.size.options.s',
          'fields.size.options.l',
          'fields.why.label',
          'fields.why.patternMessage',
          'pages.0.title',
          'pages.1.title',
          'settings.submitLabel',
          'settings.successMessage',
        ],
      },
    ];
    const body = { ...contactForm, ...definition };

    const validated = (await service.post('/v1/forms/validate', body)).json;
    const created = (await service.post('/api/forms/create', body)).json.form;
    await service.post(created.activate_url, { email: 'owner@example.com' });
    const read = (await service.get(`/v1/forms/${created.id}`)).json.form;
    const translations = { de: definition.translations.de };
    const published = await service.post(`/v1/forms/${created.id}/versions`, { ...body, translations });
    const refused = await service.post(`/v1/forms/${created.id}/versions`, {
      ...body,
      translations: { de: { fields: { nmae: { label: 'Name' } } } },
    });

    expect([validated, created, read].map((reply) => reply.missing_translations)).toEqual([
      lacking,
      lacking,
      lacking,
    ]);
    expect(read.definition.translations).toEqual(definition.translations);
    expect(published.status).toBe(201);
    expect(published.json.form).not.toHaveProperty('missing_translations');
    expect([refused.status, refused.json.error.details]).toEqual([
      422,
      [expect.objectContaining({ path: 'translations.de.fields.nmae', code: 'unrecognized_keys' })],
    ]);
  });

  describe.skipIf(noBrowser)('on its page', () => {
    afterEach(() => browser.expectNoProblems());

    it.each([
      ['with script', true],
      ['without script', false],
    ])('is that of the browser until another is chosen, and stays so to the end, %s', async (_, script) => {
      const session = await givenSession(service, definition);
      const page = await browser.open(`/f/${session.id}`, { locale: 'de-AT', javaScriptEnabled: script });

      expect(await textsOf(page)).toEqual(['Umfrage', 'Zuerst', 'Ihr Name*(erforderlich)']);
      expect(await page.getAttribute('html', 'lang')).toBe('de');
      if (script) await page.fill('[name=name]', 'Ada');
      await page.click('.languages a[hreflang=en]');
      await page.waitForSelector('h1:has-text("Survey")');
      expect(await page.getAttribute('html', 'lang')).toBe('en');
      if (script) expect(await page.inputValue('[name=name]')).toBe('Ada');
      else await page.fill('[name=name]', 'Ada');
      expect(await page.locator('.languages').innerText()).toMatch(/English\s+Deutsch\s+العربية/);
      if (script) expect(await browser.audit(page)).toEqual([]);

      await page.check('[value=s]');
      await page.click('button[value=forward]');
      await page.waitForSelector('h1:has-text("Then")');
      await page.click('.languages a[hreflang=de]');
      await page.waitForSelector('h1:has-text("Dann")');
      expect(page.url()).toContain('lang=de');
      await page.fill('[name=why]', 'a');
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');
      expect(await page.textContent('.summary a')).toBe('Warum – Beginnen Sie mit b');
      expect(await page.textContent('button[value=forward]')).toBe('Abschicken');
      await page.fill('[name=why]', 'b');
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');

      expect(await page.textContent('main')).toMatch(/Vielen Dank[\s\S]*Größe[\s\S]*Klein/);
      expect(await answersOf(service, session)).toEqual({ name: 'Ada', size: 's', why: 'b' });
      await page.goto(new URL(`/f/${session.id}?lang=de`, service.url).href);
      expect(await page.textContent('h1')).toBe('Bereits abgesendet');
    });

    it('is chosen on the form’s own page too, where nothing is kept, and keeps what else its address says', async () => {
      const form = await service.givenPublishedForm({
        ...definition,
        settings: { ...definition.settings, allowPartial: false },
        fields: definition.fields.slice(0, 2),
        pages: [],
        translations: { ar: definition.translations.ar },
      });
      const page = await browser.open(`/f/${form.id}?size=l&lang=xx`, { locale: 'fr-FR' });

      await page.fill('[name=name]', 'Ada');
      await page.click('.languages a[hreflang=ar]');
      await page.waitForSelector('html[dir=rtl]');
      expect(await page.inputValue('[name=name]')).toBe('Ada');
      expect(await page.isChecked('[value=l]')).toBe(true);
      expect(new URL(page.url()).search).toBe('?size=l&lang=ar');
      expect(await browser.audit(page)).toEqual([]);
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');
      expect(await page.getAttribute('html', 'lang')).toBe('ar');

      const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
      expect(submissions[0].answers).toEqual({ name: 'Ada', size: 'l' });
    });

    it('has no switch where there is nothing to choose', async () => {
      const { translations: _, ...plain } = definition;
      const session = await givenSession(service, plain);

      const page = await browser.open(`/f/${session.id}?lang=de`, { locale: 'de' });

      expect(await page.textContent('h1')).toBe('Survey');
      expect(await page.locator('.languages').count()).toBe(0);
    });
  });
});

async function textsOf(page: Page): Promise<string[]> {
  const texts = await page.locator('h1, h2.step, [for="name.0"]').allTextContents();
  return texts.map((text) => text.replace(/\s*([*(])/g, '$1').trim());
}
