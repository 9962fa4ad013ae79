import { promisify } from 'node:util';
import { brotliDecompressSync, gunzipSync, gzip, gzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: PublishedForm;

beforeAll(async () => {
  service = await startService();
  const options = Array.from({ length: 60 }, (_, index) => ({
    label: `Choice ${index}`,
    value: `v${index}`,
  }));
  form = await service.givenPublishedForm({
    fields: [
      { id: 'email', type: 'email', required: true },
      { id: 'topic', type: 'select', options },
      { id: 'cv', type: 'file' },
    ],
  });
});
afterAll(() => service[Symbol.asyncDispose]());

/** A request with no header but those given, and its reply as it came. */
async function ask(path: string, { method = 'GET', headers = {}, body }: Asked = {}) {
  const reply = await request(service.url + path, { method, headers, body: body ?? null });
  const bytes = Buffer.from(await reply.body.arrayBuffer());
  return { status: reply.statusCode, headers: reply.headers, bytes };
}

type Asked = {
  method?: 'GET' | 'HEAD' | 'POST' | 'OPTIONS';
  headers?: Record<string, string>;
  body?: string | Buffer;
};

const withKey = () => ({ authorization: `Bearer ${service.key}` });

describe('replies', () => {
  it('are compressed as the caller prefers, the same in every coding', async () => {
    for (const [path, headers] of [
      ['/openapi.json', {}],
      [`/v1/forms/${form.id}`, withKey()],
      [`/f/${form.id}`, { accept: 'text/html' }],
    ] as const) {
      const plain = await ask(path, { headers });
      const br = await ask(path, { headers: { ...headers, 'accept-encoding': 'gzip, br' } });
      const zipped = await ask(path, { headers: { ...headers, 'accept-encoding': 'gzip' } });

      expect([plain.headers['content-encoding'], plain.status]).toEqual([undefined, 200]);
      expect([br.headers['content-encoding'], zipped.headers['content-encoding']]).toEqual(['br', 'gzip']);
      expect([br.headers.etag, zipped.headers.etag]).toEqual([plain.headers.etag, plain.headers.etag]);
      expect(br.bytes.length).toBeLessThan(plain.bytes.length / 2);
      // A page has the time in it.
      if (path.startsWith('/f/')) continue;
      expect(brotliDecompressSync(br.bytes).equals(plain.bytes)).toBe(true);
      expect(gunzipSync(zipped.bytes).equals(plain.bytes)).toBe(true);
    }
  });

  it('are not where a secret stands beside what somebody else may choose', async () => {
    const zipped = { 'accept-encoding': 'gzip, br' };
    const cookie = { ...zipped, cookie: 'any=1', accept: 'text/html' };
    const url = `https://example.com/${'a'.repeat(1500)}`;

    const withCookie = await ask(`/f/${form.id}?email=x`, { headers: cookie });
    const owners = await ask('/owner', { headers: cookie });
    const secret = await ask('/v1/webhooks', {
      method: 'POST',
      headers: { ...zipped, ...withKey(), 'content-type': 'application/json' },
      body: JSON.stringify({ url, events: ['submission.created'] }),
    });

    expect(
      [withCookie, owners, secret].map(({ status, headers }) => [status, headers['content-encoding']]),
    ).toEqual([
      [200, undefined],
      [200, undefined],
      [201, undefined],
    ]);
    expect(secret.bytes.length).toBeGreaterThan(1024);
  });

  it('are whole where they are long, sent in chunks and compressed', async () => {
    const listed = await service.givenPublishedForm({ fields: [{ id: 'text', type: 'text' }] });
    for (let n = 0; n < 40; n += 1) {
      const answers = { text: `${n} ${'x'.repeat(9_000)}` };
      await service.post(`/api/forms/${listed.id}/submissions`, { answers });
    }
    const path = `/v1/forms/${listed.id}/submissions/export?format=ndjson`;

    const plain = await ask(path, { headers: withKey() });
    const br = await ask(path, { headers: { ...withKey(), 'accept-encoding': 'br' } });

    expect(br.headers['content-encoding']).toBe('br');
    expect(brotliDecompressSync(br.bytes).toString()).toBe(plain.bytes.toString());
    expect(plain.bytes.toString().trim().split('\n')).toHaveLength(40);
  });
});

describe('documents and schemas', () => {
  it.each([
    ['/openapi.json'],
    ['/schemas/form.json'],
    ['/descriptor.binpb'],
    ['/v1/forms/FORM/agent-schema'],
    ['/v1/forms/FORM/versions/current/schema?format=proto'],
    ['/api/forms/FORM'],
  ])('%s is 304 for who has it', async (template) => {
    const path = template.replace('FORM', form.id);
    const first = await ask(path, { headers: withKey() });
    const tag = String(first.headers.etag);

    const again = await ask(path, {
      headers: { ...withKey(), 'if-none-match': `"other", ${tag}`, 'accept-encoding': 'br' },
    });
    const other = await ask(path, { headers: { ...withKey(), 'if-none-match': '"other"' } });

    expect([first.status, tag]).toEqual([200, expect.stringMatching(/^W\/"[\w-]{22}"$/)]);
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, tag]);
    expect([other.status, other.bytes.length]).toEqual([200, first.bytes.length]);
  });
});

describe('a body in gzip', () => {
  const json = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const path = () => `/api/forms/${form.id}/submissions`;
  const send = (body: string | Buffer, headers: Record<string, string> = json, to = path()) =>
    ask(to, { method: 'POST', headers, body });

  it('is read as if it had come without, on every kind of route', async () => {
    const answers = gzipSync(JSON.stringify({ answers: { email: 'a@example.com' } }));
    const inputs = gzipSync('email=a%40example.com');
    const urlencoded = {
      'content-type': 'application/x-www-form-urlencoded',
      'content-encoding': 'gzip',
      accept: 'application/json',
    };
    const boundary =
      'content-type: form\r\n--b\r\ncontent-disposition: form-data; name="email"\r\n\r\na@example.com\r\n--b--\r\n';
    const multipart = { ...urlencoded, 'content-type': 'multipart/form-data; boundary=b' };
    const file = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };

    const replies = [
      await send(answers),
      await send(inputs, urlencoded),
      await send(gzipSync(boundary.slice(boundary.indexOf('--b'))), multipart),
      await send(gzipSync('content'), file, `/api/forms/${form.id}/uploads?field=cv&filename=a.txt`),
    ];

    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(JSON.parse(String(replies[3]?.bytes)).upload.size).toBe('content'.length);
  });

  it('is refused if it is none, is cut off, or is packed otherwise', async () => {
    const whole = gzipSync(JSON.stringify({ answers: { email: 'a@example.com' } }));

    expect((await send('{}')).status).toBe(400);
    expect((await send(whole.subarray(0, -12))).status).toBe(400);
    expect((await send(whole, { ...json, 'content-encoding': 'br' })).status).toBe(415);
    expect((await send(whole, { ...json, 'content-encoding': 'gzip, gzip' })).status).toBe(415);
  });

  it('is refused before it is inflated whole, wherever it goes', async () => {
    // Beside the event loop: while it stands still, connections that rest become too old.
    const bomb = await promisify(gzip)(Buffer.alloc(200 * 1024 * 1024, ' '));
    const form64 = { 'content-encoding': 'gzip', 'content-type': 'application/x-www-form-urlencoded' };
    const raw = { 'content-encoding': 'gzip', 'content-type': 'text/plain' };
    const before = process.memoryUsage().rss;

    const replies = [
      await send(bomb),
      await send(bomb, form64),
      await send(bomb, raw, `/api/forms/${form.id}/uploads?field=cv&filename=a.txt`),
      await send(bomb, json, '/api/forms/create'),
    ];

    expect(replies.map(({ status }) => status)).toEqual([413, 413, 413, 413]);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });
});

it.each([
  ['/v1/forms', 'GET, HEAD'],
  ['/openapi.json', 'GET, HEAD'],
  ['/f/sess_none', 'GET, HEAD, POST'],
  ['/api/forms/create', 'POST'],
])('OPTIONS of %s says what it knows', async (path, allow) => {
  const reply = await ask(path, { method: 'OPTIONS' });

  expect([reply.status, reply.headers.allow, reply.bytes.length]).toEqual([204, allow, 0]);
});

it('a list says in Link where it goes on', async () => {
  const listed = await service.givenPublishedForm({ fields: [{ id: 'text', type: 'text' }] });
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    ids.unshift(
      (await service.post(`/api/forms/${listed.id}/submissions`, { answers: {} })).json.submission_id,
    );
  }
  const found: string[] = [];
  let next: string | undefined = `/v1/forms/${listed.id}/submissions?limit=2&offset=1&utm_x=1`;
  while (next !== undefined) {
    const { headers, bytes } = await ask(next, { headers: withKey() });
    found.push(...JSON.parse(bytes.toString()).submissions.map(({ id }: { id: string }) => id));
    const [, relative] = /^<([^>]*)>; rel="next"$/.exec(String(headers.link ?? '')) ?? [];
    const address: URL | undefined =
      relative === undefined ? undefined : new URL(relative, service.url + next);
    next = address ? address.pathname + address.search : undefined;
  }

  expect(found).toEqual(ids.slice(1));
});
