import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { chromiumPath } from '../support/chromium.ts';
import { smallerPng } from '../support/png.ts';
import { freePort, temporaryFolder } from '../support/spawn.ts';

/**
 * Pictures of the pages for the documents: `npm run screenshots` writes them to docs/screenshots, and those of
 * walk.browser.test.ts.
 *
 * It starts a service of its own and needs Chromium (CHROMIUM_PATH, else Debian's).
 */
const folder = new URL('../../docs/screenshots/', import.meta.url).pathname;
const key = 'screenshots-'.padEnd(32, 'x');
const phone = { viewport: { width: 390, height: 760 } };
const desk = { viewport: { width: 800, height: 720 } };

await using opened = new AsyncDisposableStack();
const dataDir = opened.use(temporaryFolder()).path;
const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
const config = readConfig({
  HOST: '127.0.0.1',
  PORT: String(port),
  GRPC_PORT: String(grpcPort),
  DATA_DIR: dataDir,
  BOOTSTRAP_API_KEY: key,
});
const log = pino({ level: 'silent' });
const app = opened.adopt(await startApp(config, { log, now: Date.now, random: Math.random }), (running) =>
  running.close(),
);
const browser = opened.adopt(
  await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--lang=en-US'],
  }),
  (started) => started.close(),
);
await mkdir(folder, { recursive: true });

const booking = {
  name: 'Book a studio tour',
  slug: 'tour',
  description: 'Forty minutes, free of charge. We confirm by email within a day.',
  delivery: { type: 'email' },
  fields: [
    { id: 'name', type: 'text', label: 'Your name', required: true, maxLength: 80 },
    { id: 'email', type: 'email', label: 'Email address', required: true },
    { id: 'day', type: 'date', label: 'Day', required: true, min: '2027-01-04', max: '2027-03-31' },
    {
      id: 'group',
      type: 'radio',
      label: 'Who is coming?',
      required: true,
      options: [
        { label: 'Just me', value: 'one' },
        { label: 'A small group', value: 'group' },
      ],
    },
    {
      id: 'size',
      type: 'number',
      label: 'How many people?',
      min: 2,
      max: 12,
      step: 1,
      visibleWhen: { field: 'group', op: 'eq', value: 'group' },
    },
    { id: 'wishes', type: 'textarea', label: 'Anything we should know?', maxLength: 500 },
    { id: 'terms', type: 'checkbox', label: 'I have read the house rules', required: true },
  ],
  settings: { submitLabel: 'Book the tour', theme: { accentColor: '#0f766e' } },
};

const application = {
  name: 'Apply for a residency',
  slug: 'residency',
  delivery: { type: 'email' },
  fields: [
    { id: 'name', type: 'text', label: 'Your name', required: true },
    {
      id: 'field',
      type: 'select',
      label: 'Your field',
      required: true,
      page: 2,
      options: [
        { label: 'Sound', value: 'sound' },
        { label: 'Textile', value: 'textile' },
      ],
    },
    {
      id: 'needs',
      type: 'multi_select',
      label: 'What do you need?',
      page: 2,
      maxItems: 2,
      options: [
        { label: 'A studio', value: 'studio' },
        { label: 'A room to stay', value: 'room' },
        { label: 'A workshop', value: 'workshop' },
      ],
    },
    { id: 'portfolio', type: 'file', label: 'Portfolio', page: 2, accept: ['application/pdf'], maxFiles: 3 },
    { id: 'start', type: 'date', label: 'First day', page: 3 },
  ],
  settings: { allowPartial: true },
};

const arabic = {
  name: 'حجز زيارة',
  slug: 'visit',
  description: 'نؤكد الموعد بالبريد الإلكتروني خلال يوم واحد.',
  delivery: { type: 'email' },
  fields: [
    { id: 'name', type: 'text', label: 'الاسم', required: true },
    { id: 'email', type: 'email', label: 'البريد الإلكتروني', required: true },
    { id: 'guide', type: 'boolean', label: 'هل تريد مرشدا؟', required: true },
  ],
  settings: { locale: 'ar' },
};

const tour = await open(await givenSession(booking), desk);
await take(tour, 'form');
await tour.fill('[name=name]', 'Ada Lovelace');
await tour.fill('[name=email]', 'ada@example');
await tour.check('[name=group][value=group]');
await tour.click('button[value=forward]');
await tour.waitForSelector('.summary');
await take(tour, 'errors', { fullPage: false });
await tour.fill('[name=email]', 'ada@example.com');
await tour.fill('[name=day]', '2027-02-12');
await tour.fill('[name=size]', '4');
await tour.check('[name=terms]');
await tour.click('button[value=forward]');
await tour.waitForSelector('.copy');
await tour.evaluate('document.activeElement.blur()');
await take(tour, 'thanks');

await take(await open(await givenSession(booking), { ...phone, colorScheme: 'dark' }), 'phone-dark');
await take(await open(await givenSession(arabic), phone), 'right-to-left');

const steps = await open(await givenSession(application), desk);
await steps.fill('[name=name]', 'Ada Lovelace');
await steps.click('button[value=forward]');
await steps.waitForSelector('[name=field]');
await steps.selectOption('[name=field]', 'sound');
await steps.setInputFiles('[name=portfolio]', {
  name: 'portfolio.pdf',
  mimeType: 'application/pdf',
  buffer: Buffer.from('%PDF-1.7\n%%EOF'),
});
await steps.check('[name=needs][value=studio]');
await steps.locator('.status.good').waitFor();
await take(steps, 'steps');

const draft = await call('POST', '/api/forms/create', booking);
await take(await open(draft.form.activate_url, desk), 'activate');

async function take(page: Page, name: string, { fullPage = true } = {}): Promise<void> {
  const picture = smallerPng(await page.screenshot({ fullPage, animations: 'disabled', caret: 'hide' }));
  await writeFile(join(folder, `${name}.png`), picture);
  process.stdout.write(`${name}.png ${Math.ceil(picture.length / 1024)} KB\n`);
}

async function open(path: string, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-US', ...options });
  const page = await context.newPage();
  await page.goto(new URL(path, app.url).href);
  return page;
}

async function givenSession(definition: object): Promise<string> {
  const { form } = await call('POST', '/api/forms/create', definition);
  await call('POST', form.activate_url, { email: 'owner@example.com' });
  const { session } = await call('POST', `/v1/forms/${form.id}/sessions`, {});
  return `/f/${session.id}`;
}

async function call(method: string, path: string, body: object): Promise<Created> {
  const response = await fetch(new URL(path, app.url), {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Created;
}

type Created = { form: { id: string; activate_url: string }; session: { id: string } };
