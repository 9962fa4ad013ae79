import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type InstalledPackage, installPackage } from './installed.ts';
import { bundle, serveScript } from './site.ts';

const fields = [
  { id: 'email', type: 'email', label: 'Email', required: true },
  { id: 'guests', type: 'number', label: 'Guests' },
  { id: 'code', type: 'text', label: 'Code', pattern: '[A-Z]{3}', patternMessage: 'Three capital letters' },
  { id: 'plan', type: 'select', label: 'Plan', options: [{ label: 'Pro', value: 'pro' }], page: 2 },
  {
    id: 'why',
    type: 'text',
    label: 'Why Pro?',
    required: true,
    page: 2,
    visibleWhen: { field: 'plan', op: 'eq', value: 'pro' },
  },
];

describe.skipIf(noBrowser)('a page of another origin, with the package from its archive', () => {
  const opened = new AsyncDisposableStack();
  let installed: InstalledPackage;
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    installed = opened.use(await installPackage());
    service = opened.use(await startService());
    browser = opened.use(await startBrowser(service));
  }, 120_000);
  afterAll(() => opened.disposeAsync());

  it.each([
    ['examples/browser', 'main.ts'],
    ['examples/react', 'main.tsx'],
  ])('%s shows a form step by step, says what is wrong, keeps a draft, and submits', async (folder, main) => {
    await installed.copy(folder);
    const html = await readFile(join(installed.folder, 'index.html'), 'utf8');
    await using site = await serveScript(await bundle(join(installed.folder, main)), html);
    const settings = { allowedOrigins: [site.origin], successMessage: 'See you!', locale: 'en' };
    const { id } = await service.givenPublishedForm({ fields, settings });
    const before = await service.countSubmissions();
    const page = await browser.open(`${site.origin}/?form=${id}&service=${encodeURIComponent(service.url)}`);
    const says = (text: string) =>
      until(async () => (await page.locator('body').textContent())?.includes(text));

    await page.getByLabel('Email').fill('ada');
    await page.getByRole('button', { name: 'Continue' }).click();
    await says('Enter an email address');
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByLabel('Guests').pressSequentially('1.5');
    expect(await page.getByLabel('Guests').inputValue()).toBe('1.5');
    await page.getByLabel('Code').fill('abc');
    await page.getByRole('button', { name: 'Continue' }).click();
    // The service alone knows patterns.
    await says('Three capital letters');
    await page.getByLabel('Code').fill('ABC');
    await page.reload();
    expect(await page.getByLabel('Code').inputValue()).toBe('ABC');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('Plan').selectOption('pro');
    await page.getByLabel('Why Pro?').fill('Because');
    expect(await service.countSubmissions()).toBe(before);
    await page.getByRole('button', { name: 'Send' }).click();
    await says('See you! sub_');

    const [stored] = (await service.get(`/v1/forms/${id}/submissions`)).json.submissions;
    expect(stored.answers).toEqual({
      email: 'ada@example.com',
      guests: 1.5,
      code: 'ABC',
      plan: 'pro',
      why: 'Because',
    });
    expect(stored.source).toBe('website');
    await browser.expectNoProblems();
  });

  it('uploads a file, forgets a draft, and speaks the reader’s language as the service does', async () => {
    const all = [...fields.slice(0, 1), { id: 'cv', type: 'file', label: 'CV', maxBytes: 100 }];
    const { id } = await service.givenPublishedForm({ fields: all });
    const script = `import { createForm, readForm } from 'PACKAGE/form';
      window.begin = async (languages) => {
        const options = { service: ${JSON.stringify(service.url)}, ...(languages && { languages }) };
        const form = createForm(await readForm(options.service, ${JSON.stringify(id)}), options);
        await form.ready;
        window.form = form;
      };
      window.errors = () => form.state.fields.flatMap(({ error }) => error ?? []);`;
    await using site = await serveScript(await bundle(await installed.write('whole.js', script)));
    const page = await browser.open(`${site.origin}/`, { locale: 'fr-FR' });
    const run = async (text: string): Promise<unknown> => page.evaluate(`(async () => { ${text} })()`);
    const serverSays = async (language: string) => {
      const options = { key: null, headers: { 'accept-language': language } };
      const body = { answers: { email: 'ada' } };
      const reply = await service.post(`/api/forms/${id}/submissions?check=true`, body, options);
      return reply.json.error.details.map(({ message }: { message: string }) => message);
    };

    const said: Record<string, unknown> = {};
    for (const language of ['de', 'ja', 'ar', 'pt-BR', 'xx']) {
      await run(`await begin([${JSON.stringify(language)}]); form.set('email', 'ada'); await form.check();`);
      said[language] = await run('return errors()');
    }
    await run(`await begin(); form.set('email', 'ada'); await form.check();`);
    said.browser = await run('return errors()');

    const draft = await run(`form.set('email', 'ada@example.com');
      await form.upload('cv', new File(['Hello'], 'cv.txt', { type: 'text/plain' }));
      await begin();
      return form.state.values;`);
    const afterReset = await run(`form.reset();
      const { values, status } = form.state;
      const stored = Object.keys(sessionStorage).length;
      await begin();
      return [values, status, stored, form.state.values];`);
    const refused =
      await run(`const taken = await form.upload('cv', new File(['x'.repeat(101)], 'large.txt', { type: 'text/plain' }));
      return [taken, ...errors()];`);
    const sent = await run(`form.set('email', 'ada@example.com');
      await form.upload('cv', new File(['Hello'], 'cv.txt', { type: 'text/plain' }));
      const first = await form.submit() && form.state.submissionId;
      form.reset();
      form.set('email', 'ada@example.com');
      const second = await form.submit() && form.state.submissionId;
      return [first, second];`);

    for (const language of ['de', 'ja', 'ar', 'pt-BR']) {
      expect(said[language], language).toEqual(await serverSays(language));
      expect(said[language], language).not.toEqual(said.xx);
    }
    expect(said.browser).toEqual(await serverSays('fr-FR'));
    expect(said.xx).toEqual(['Enter an email address, like name@example.com.']);
    expect(draft).toEqual({ email: 'ada@example.com', cv: { upload_id: expect.stringMatching(/^upl_/) } });
    expect(afterReset).toEqual([{}, 'editing', 0, {}]);
    expect(refused).toEqual([false, expect.stringContaining('large.txt')]);
    const [first, second] = sent as string[];
    const answers = async (of: string | undefined) =>
      (await service.get(`/v1/submissions/${of}`)).json.submission.answers;
    expect(await answers(first)).toMatchObject({ email: 'ada@example.com', cv: { filename: 'cv.txt' } });
    expect(await answers(second)).toEqual({ email: 'ada@example.com' });
    await browser.expectNoProblems();
  });
});
