import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { signWebhook } from '../../src/domain/delivery/signature.ts';
import { startService, type TestService } from '../support/server.ts';
import { type InstalledPackage, installPackage } from './installed.ts';

const root = join(import.meta.dirname, '../..');
const opened = new AsyncDisposableStack();
let installed: InstalledPackage;
let service: TestService;

beforeAll(async () => {
  installed = opened.use(await installPackage());
  service = opened.use(await startService());
});
afterAll(() => opened.disposeAsync());

/** Runs a module in the folder of the package, and returns what it prints as JSON. */
async function run(name: string, text: string, env: Record<string, string> = {}) {
  const path = await installed.write(name, text);
  const { stdout } = await promisify(execFile)(process.execPath, [path], { env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

const everyName = `
  const names = [index.createFormsClient, index.waitForSession, index.FormsService, form.createForm, webhooks.verifyWebhook];
  console.log(JSON.stringify(names.map((each) => typeof each)));`;
const everyKind = ['function', 'function', 'object', 'function', 'function'];

it('is an ES module', async () => {
  const text = `import * as index from 'PACKAGE';
    import * as form from 'PACKAGE/form';
    import * as webhooks from 'PACKAGE/webhooks';
    ${everyName}`;

  expect(await run('names.mjs', text)).toEqual(everyKind);
});

it('is CommonJS', async () => {
  const text = `const index = require('PACKAGE');
    const form = require('PACKAGE/form');
    const webhooks = require('PACKAGE/webhooks');
    ${everyName}`;

  expect(await run('names.cjs', text)).toEqual(everyKind);
});

it.each([
  [['typed.mts', 'typed.cts'], 'nodenext'],
  [['typed.ts'], 'bundler'],
])('has types: %j with the resolution %s', async (files, resolution) => {
  const text = `import { createFormsClient, waitForSession, type Form as FormMessage } from 'PACKAGE';
    import { createForm, readForm, type Form, type FormState } from 'PACKAGE/form';
    import { verifyWebhook } from 'PACKAGE/webhooks';
    const client = createFormsClient({ baseUrl: '', apiKey: '' });
    export const name: Promise<string> = client.forms.getForm({ formId: '' }).then(({ form }: { form?: FormMessage }) => form?.name ?? '');
    export const submission: Promise<string | undefined> = waitForSession(client, '').then((reply) => reply.submission?.id);
    export const made: Promise<Form> = readForm('', '').then((form) => createForm(form, { service: '' }));
    export const states = (form: Form): FormState['fields'][number]['error'] => form.state.fields[0]?.error;
    export const event: Promise<string> = verifyWebhook({ body: '', headers: {}, secret: '' }).then((each) => each.event);
    // @ts-expect-error: the name of a form is a text
    export const wrong: Promise<number> = name;`;
  const paths = await Promise.all(files.map((file) => installed.write(file, text)));
  const module = resolution === 'bundler' ? 'esnext' : 'nodenext';

  const checked = promisify(execFile)(join(root, 'node_modules/.bin/tsc'), [
    '--noEmit',
    '--strict',
    '--ignoreConfig',
    '--target',
    'es2024',
    '--lib',
    'es2024,dom,dom.iterable',
    '--types',
    '',
    '--module',
    module,
    '--moduleResolution',
    resolution,
    ...paths,
  ]);

  await expect(checked.catch(({ stdout }) => stdout)).resolves.toMatchObject({ stdout: '' });
});

it('adds at most 15 KB to a page that makes a form, and loads other languages when they are needed', async () => {
  const input = await installed.write('size.js', `export { createForm } from 'PACKAGE/form';`);
  const built = await rolldown({ input, platform: 'browser', logLevel: 'silent' });

  const { output } = await built.generate({ format: 'esm', minify: true });
  await built.close();

  const [entry, ...others] = output.map(
    (file) => gzipSync(file.type === 'chunk' ? file.code : file.source).length,
  );
  expect(entry).toBeLessThanOrEqual(15_000);
  expect(others).toHaveLength(7);
});

it('asks a person and waits for the answer', async () => {
  const { id } = await service.givenPublishedForm();

  const reply = await run(
    'wait.mjs',
    `import { createFormsClient, waitForSession } from 'PACKAGE';
     const client = createFormsClient({ baseUrl: process.env.URL, apiKey: process.env.KEY });
     const { session } = await client.sessions.createSession({ subject: { case: 'formId', value: process.env.FORM } });
     const waiting = waitForSession(client, session.id);
     await client.sessions.submitSession({ sessionId: session.id, answers: { email: 'ada@example.com' } });
     const { submission } = await waiting;
     console.log(JSON.stringify(submission.answers));`,
    { URL: service.url, KEY: service.key, FORM: id },
  );

  expect(reply).toEqual({ email: 'ada@example.com' });
});

it('repeats what a lost connection has failed, and submits once', async () => {
  const { id } = await service.givenPublishedForm();
  const proxy = await startLossyProxy(service.url);
  await using _ = proxy;
  const before = await service.countSubmissions();

  const reply = await run(
    'retries.mjs',
    `import { createFormsClient } from 'PACKAGE';
     const { submissions } = createFormsClient({ baseUrl: process.env.URL });
     const request = { formId: process.env.FORM, answers: { email: 'ada@example.com' } };
     const { submissionId } = await submissions.createSubmission(request);
     const once = createFormsClient({ baseUrl: process.env.URL, attempts: 1 });
     const failure = await once.submissions.createSubmission(request).catch(({ name }) => name);
     const refused = await submissions.createSubmission({ ...request, answers: {} }).catch(({ code }) => code);
     console.log(JSON.stringify([submissionId, failure, refused]));`,
    { URL: proxy.url, FORM: id },
  );

  expect(reply).toEqual([expect.stringMatching(/^sub_/), 'ConnectError', 3]);
  // The reply of the second call was lost, too, but it was made.
  expect(await service.countSubmissions()).toBe(before + 2);
});

it.each(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'a secret of one’s own'])(
  'verifies a webhook signed with %s, and refuses a changed or an old one',
  async (secret) => {
    const body = JSON.stringify({ id: 'evt_1', event: 'submission.created', data: {} });
    const at = Date.now();
    const headers = signWebhook({ id: 'evt_1', body, at, secret: 'the new one', previousSecret: secret });

    const reply = await run(
      'verify.mjs',
      `import { verifyWebhook } from 'PACKAGE/webhooks';
       const { body, headers, secret, at } = ${JSON.stringify({ body, headers, secret, at })};
       const verify = (changes) => verifyWebhook({ body, headers, secret, ...changes }).then(({ event }) => event, ({ name }) => name);
       console.log(JSON.stringify([
         await verify({}),
         await verify({ headers: new Headers(headers), body: new TextEncoder().encode(body) }),
         await verify({ secret: ['another', secret] }),
         await verify({ secret: 'another' }),
         await verify({ body: body + ' ' }),
         await verify({ headers: { ...headers, 'webhook-id': 'evt_2' } }),
         await verify({ headers: {} }),
         await verify({ now: at + 301_000 }),
       ]));`,
    );

    expect(reply).toEqual([...Array(3).fill('submission.created'), ...Array(5).fill('WebhookError')]);
  },
);

/** Passes every second request on and answers; of the others it loses the reply. */
async function startLossyProxy(target: string) {
  let count = 0;
  const server = createServer((request, response) => void pass(request, response));
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    count += 1;
    const isLost = count % 2 === 1;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = {
      'content-type': request.headers['content-type'] ?? '',
      'connect-protocol-version': '1',
    };
    const reply = await fetch(`${target}${request.url}`, {
      method: request.method ?? 'POST',
      headers,
      body: Buffer.concat(chunks),
    });
    const text = await reply.text();
    if (isLost) return void response.destroy();
    response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? '' }).end(text);
  };
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
