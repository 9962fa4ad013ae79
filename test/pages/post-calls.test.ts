import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import express from 'express';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createHostedPages } from '../../src/pages/router.ts';
import { startServices, type TestServices } from '../support/services.ts';

const steps = [
  { id: 'name', type: 'text', required: true },
  { id: 'cv', type: 'file' },
  { id: 'order', type: 'ranking', options: ['a', 'b'].map((value) => ({ label: value, value })) },
  { id: 'consent', type: 'checkbox', required: true, page: 2 },
];
const first = { name: 'Ada', _page: '1', _shown: 'name cv order', _go: 'forward' };
const last = { name: 'Ada', consent: 'true', _page: '2', _shown: 'consent', _go: 'forward' };

let services: TestServices;
let server: ReturnType<typeof createServer>;
let calls: string[] = [];

beforeAll(async () => {
  services = await startServices('pglite');
  const local = services.as();
  const transport: Transport = {
    unary(...call) {
      calls.push(call[0].name);
      return local.unary(...call);
    },
    stream(...call) {
      calls.push(call[0].name);
      return local.stream(...call);
    },
  };
  const log = pino({ level: 'silent' });
  const address = 'http://localhost';
  const options = {
    transport,
    hostedUrl: address,
    baseUrl: address,
    docs: true,
    guides: [],
    demo: true,
    allowPublicCreate: true,
    now: Date.now,
    log,
  };
  server = createServer(express().use(createHostedPages(options)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
beforeEach(() => {
  calls = [];
});
afterAll(async () => {
  server?.close();
  await services?.[Symbol.asyncDispose]();
});

it.each([
  ['a session', givenSession],
  ['a form', givenForm],
])('a post of a page of %s is one call, whatever it is for', async (_name, given) => {
  const address = await given({ allowPartial: true });

  const saved = await post(address, { ...first, _go: 'save' }, { accept: 'application/json' });
  const refused = await post(address, { ...first, name: '' });
  const next = await post(address, first);
  const back = await post(address, { ...last, _go: 'back' });
  const done = await post(address, last);

  expect([saved, refused, next, back, done].map(({ status }) => status)).toEqual(
    address.startsWith('/f/sess_') ? [200, 422, 303, 303, 200] : [200, 422, 200, 200, 200],
  );
  expect(done.text).toContain('Thank you');
  expect(calls).toEqual(Array.from({ length: 5 }, () => 'PostHosted'));
});

it('a form on one page is submitted by one call, and stores no session', async () => {
  const formId = await services.givenFormOf([{ id: 'name', type: 'text' }], { allowPartial: true });

  const done = await post(`/f/${formId}`, { name: 'Ada', _shown: 'name' });

  expect([done.status, calls]).toEqual([200, ['PostHosted']]);
  expect(await services.database.select('select 1 from sessions where form_id = $1', [formId])).toEqual([]);
});

it('files are looked up and stored before their post', async () => {
  const [session, form] = [await givenSession({}), await givenForm({})];

  const withFile = await post(session, multipart({ ...first }, 'cv'));
  const ofVisitor = await post(form, multipart({ ...first }, 'cv'));
  const none = await post(form, multipart({ ...first }));

  expect([withFile.status, ofVisitor.status, none.status]).toEqual([200, 200, 200]);
  expect(withFile.text).toContain('cv.txt');
  expect(ofVisitor.text).toContain('cv.txt');
  expect(calls.join(' ')).toBe(
    'GetHosted UploadFile PostHosted GetHosted OpenHostedSession UploadFile PostHosted PostHosted',
  );
});

it('a button that moves an option needs the options first', async () => {
  const address = await givenSession({ allowPartial: true });

  const moved = await post(address, { ...first, _go: 'move:order:0:1' });

  expect(moved.text).toMatch(/name="order" value="b"[\s\S]*name="order" value="a"/);
  expect(calls).toEqual(['GetHosted', 'PostHosted']);
});

it('a page of a refusal looks like its form and has what was typed, by one call more', async () => {
  const formId = await services.givenFormOf(steps);
  const address = `/f/${formId}`;
  await services.forms.archiveForm({ formId }, services.owner);

  const page = await post(address, first);
  const json = await post(address, first, { accept: 'application/json' });

  expect([page.status, json.status]).toEqual([410, 410]);
  expect(page.text).toMatch(/class="form-name">Test<[\s\S]*Ada/);
  expect(calls).toEqual(['PostHosted', 'GetHosted', 'PostHosted']);
});

it.each([
  ['a session', givenSession],
  ['a form', givenForm],
])(
  'a second click on a page of %s gets the first ending, though the form is full by then',
  async (_, given) => {
    const address = await given({ maxSubmissions: 1, allowPartial: true });
    const issued = /name="_issued" value="([^"]+)"/.exec((await get(address)).text)?.[1] ?? '';
    const click = () => post(address, { ...last, _issued: issued });

    const both = await Promise.all([click(), click()]);
    const again = await click();
    const other = await post(address, { ...last, name: 'Eve', _issued: issued });

    expect([...both, again].map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(again.text).toMatch(/Thank you[\s\S]*Ada/);
    expect(other.status).toBe(409);
  },
);

async function givenForm(settings: object): Promise<string> {
  return `/f/${await services.givenFormOf(steps, settings)}`;
}

async function givenSession(settings: object): Promise<string> {
  const value = await services.givenFormOf(steps, settings);
  const { session } = await services.sessions.createSession(
    { subject: { case: 'formId', value } },
    services.owner,
  );
  return `/f/${session?.id}`;
}

function multipart(inputs: Record<string, string>, file?: string): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(inputs)) data.set(name, value);
  if (file !== undefined) data.set(file, new File(['a file'], 'cv.txt', { type: 'text/plain' }));
  return data;
}

function post(path: string, body: Record<string, string> | FormData, headers: Record<string, string> = {}) {
  return get(path, {
    method: 'POST',
    redirect: 'manual',
    body: body instanceof FormData ? body : new URLSearchParams(body),
    headers,
  });
}

async function get(path: string, init: RequestInit = {}): Promise<{ status: number; text: string }> {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  return { status: response.status, text: await response.text() };
}
