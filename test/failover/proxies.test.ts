import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { fetch } from 'undici';
import { describe, expect, it } from 'vitest';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { MAX_FILE_BYTES } from '../../src/domain/fields/file.ts';
import { createServerDatabase } from '../support/database.ts';
import { startProcess } from '../support/processes.ts';
import { freePort, temporaryFolder } from '../support/spawn.ts';
import { configOf, proxyNames, startProxy } from './proxies.ts';

const KEY = `hfs_${'p'.repeat(43)}`;

describe.each(proxyNames)('the published configuration of %s', (name) => {
  it('passes on pages, REST and gRPC, long waits, streams and large files, and whose call it is', async () => {
    await using owned = new AsyncDisposableStack();
    const { proxy, call, json } = await givenProxy(owned, name);
    const created = await json('POST', '/api/forms/create', contactForm);
    await json('POST', created.form.activate_url, { email: 'owner@example.com' });
    const form = `/v1/forms/${created.form.id}`;
    const { session } = await json('POST', `${form}/sessions`, {});

    const page = await call('GET', new URL(session.url).pathname);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(await page.text()).toContain('Contact');

    const size = MAX_FILE_BYTES;
    const uploads = `/api/forms/${created.form.id}/uploads?field=cv&filename=cv.txt`;
    const type = { 'content-type': 'application/octet-stream' };
    const uploaded = await call('POST', uploads, Buffer.alloc(size, 'a text '), type);
    expect([uploaded.status, ((await uploaded.json()) as Reply).upload.size]).toEqual([201, size]);

    const waiting = json('GET', `/v1/sessions/${session.id}?wait=60`);
    const events = await call('GET', `${form}/submissions/stream`);
    const read = eventsOf(events.body);
    expect(await read()).toMatch(/^retry/);
    const answers = { email: 'ada@example.com' };
    await json('POST', `/v1/sessions/${session.id}/submit`, { answers });
    // Neither is held back until there is more of it.
    expect((await waiting).session.status).toBe('submitted');
    let seen = '';
    while (!seen.includes('ada@example.com')) seen += await read();

    const headers = { authorization: `Bearer ${KEY}` };
    const forms = await createClient(FormsService, proxy.grpc).listForms({}, { headers });
    expect(forms.forms.map(({ id }) => id)).toEqual([created.form.id]);
    const watching = createClient(SubmissionsService, proxy.grpc).watchSubmissions(
      { formId: created.form.id },
      { headers },
    );
    for await (const { submission } of watching) {
      if (submission === undefined) {
        await json('POST', `/api/forms/${created.form.id}/submissions`, {
          answers: { email: 'joan@example.com' },
        });
      } else break;
    }
  });

  it('tells clients by their address, whatever they say of themselves', async () => {
    await using owned = new AsyncDisposableStack();
    const { proxy } = await givenProxy(owned, name);
    const agents = { '127.0.0.2': proxy.agentFrom('127.0.0.2'), '127.0.0.3': proxy.agentFrom('127.0.0.3') };
    const statusFrom = async (localAddress: keyof typeof agents, forwarded: string) => {
      const reply = await fetch(`${proxy.url}/api/demo`, {
        method: 'POST',
        dispatcher: agents[localAddress],
        headers: { 'content-type': 'application/json', 'x-forwarded-for': forwarded },
        body: JSON.stringify({ answers: { name: 'Ada', email: 'ada@example.com', message: 'Hello' } }),
      });
      await reply.arrayBuffer();
      return reply.status;
    };

    // 30 an hour are allowed to one client.
    const statuses: number[] = [];
    for (let n = 0; n < 31; n += 1) statuses.push(await statusFrom('127.0.0.2', `198.51.100.${n}`));
    const other = await statusFrom('127.0.0.3', '127.0.0.2');

    expect(statuses.slice(0, 30).every((status) => status < 300)).toBe(true);
    expect([statuses[30], other < 300]).toEqual([429, true]);
  });

  it('has browsers keep to it for a year, and speaks TLS 1.2 and later without CBC', async () => {
    await using owned = new AsyncDisposableStack();
    const { proxy, call } = await givenProxy(owned, name);
    const { port } = new URL(proxy.url);
    const chosen = (options: ConnectionOptions) =>
      new Promise<string>((resolve, reject) => {
        const server = { host: '127.0.0.1', port: Number(port), servername: 'localhost' };
        const socket = connectTls({ ...server, rejectUnauthorized: false, ...options }, () => {
          resolve(socket.getCipher().name);
          socket.destroy();
        }).once('error', reject);
      });

    for (const path of ['/health', '/v1/forms', '/nowhere']) {
      const { headers } = await call('GET', path);
      expect([path, headers.get('strict-transport-security')]).toEqual([path, 'max-age=31536000']);
    }
    expect(await chosen({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE+AESGCM' })).toMatch(/GCM/);
    await expect(chosen({ maxVersion: 'TLSv1.2', ciphers: 'AES:!AESGCM:!AESCCM' })).rejects.toThrow();
    await expect(
      chosen({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }),
    ).rejects.toThrow();
  });

  it('waits for longer than a call may take', () => {
    const config = configOf(name);
    const seconds = [...config.matchAll(/timeout (?:client|server) (\d+)s|_timeout (\d+)s;$/gm)]
      .filter(([line]) => !line.includes('keepalive'))
      .map(([, haproxy, nginx]) => Number(haproxy ?? nginx));

    // Caddy has no such time-outs unless they are set.
    expect(seconds).toHaveLength({ haproxy: 2, nginx: 5, caddy: 0 }[name]);
    expect(Math.min(75, ...seconds)).toBeGreaterThan(60);
    expect(/read_timeout|response_header_timeout/.test(config)).toBe(name === 'nginx');
  });
});

async function givenProxy(owned: AsyncDisposableStack, name: (typeof proxyNames)[number]) {
  const { databaseUrl } = owned.use(await createServerDatabase());
  const port = await freePort();
  const instance = await startProcess(owned, {
    dataDir: `${owned.use(temporaryFolder()).path}/data`,
    databaseUrl,
    key: KEY,
    env: { TRUST_PROXY: '1', BASE_URL: `https://localhost:${port}`, WEBHOOK_ALLOW_PRIVATE: 'true' },
  });
  const proxy = await startProxy(owned, name, { port, instances: [instance] });
  const dispatcher = proxy.agentFrom('127.0.0.1');
  const call = (method: string, path: string, body?: Buffer | string, headers: Record<string, string> = {}) =>
    fetch(new URL(path, proxy.url), {
      method,
      dispatcher,
      headers: { authorization: `Bearer ${KEY}`, ...headers },
      ...(body !== undefined && { body }),
    });
  const json = async (method: string, path: string, body?: object): Promise<Reply> => {
    const headers = { 'content-type': 'application/json' };
    const reply = await call(method, path, body && JSON.stringify(body), body && headers);
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text} ${proxy.output()}`);
    return JSON.parse(text) as Reply;
  };
  return { proxy, call, json };
}

/** Reads what comes next of a stream. */
function eventsOf(body: AsyncIterable<Uint8Array> | null): () => Promise<string> {
  if (body === null) throw new Error('The stream has no body.');
  const pieces = body[Symbol.asyncIterator]();
  return async () => {
    const { value, done } = await pieces.next();
    if (done === true) throw new Error('The stream has ended.');
    return Buffer.from(value).toString('utf8');
  };
}

const contactForm = {
  name: 'Contact',
  slug: 'contact',
  fields: [
    { id: 'email', type: 'email', required: true },
    { id: 'cv', type: 'file' },
  ],
  delivery: { type: 'email' },
};

/** The parts of replies that are read here. */
type Reply = {
  form: { id: string; activate_url: string };
  session: { id: string; url: string; status: string };
  upload: { size: number };
};
