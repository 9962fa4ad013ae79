import { Code, type ConnectError } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { MAX_KEYLESS_BYTES } from '../../src/domain/limits/limits.ts';
import { policies } from '../../src/domain/methods.ts';
import { examples } from '../../src/pages/new.ts';
import { startService, type TestService } from '../support/server.ts';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

/** Posts a text as the page `/new` does. */
function preview(text: string, { to = service, key = null, origin = to.url, query = '' }: Posting = {}) {
  const headers = { 'content-type': 'application/json', ...(origin !== null && { origin }) };
  return to.post(`/new${query}`, Buffer.from(text), { key, headers });
}

type Posting = { to?: TestService; key?: string | null; origin?: string | null; query?: string };

describe('a preview of a form', () => {
  it.each(examples)('shows the example $title, which can be created as it is', async ({ text }) => {
    const { status, json } = await preview(text);
    const created = await service.post('/api/forms/create', JSON.parse(text), { key: null });

    expect([status, json.problems, created.status]).toEqual([200, [], 201]);
    expect(json.html).toContain(`<h1 dir="auto">${JSON.parse(text).name}</h1>`);
  });

  it('shows each step, and has nothing that could be sent or run', async () => {
    const text = examples.find(({ title }) => title === 'Job application')?.text ?? '';

    const { json } = await preview(text, { query: '?step=2&nonce=abc' });

    expect(json.steps).toEqual([
      [1, 'About you'],
      [2, 'Your experience'],
      [3, 'Documents'],
      [101, 'Step 4'],
    ]);
    expect(json.step).toBe(2);
    expect(json.html).toContain('name="experience"');
    expect(json.html).not.toMatch(/<form|<script|name="name" type="text"/);
  });

  it('allows its accent by the nonce of the page around it', async () => {
    const text = examples.find(({ title }) => title === 'Order')?.text ?? '';

    const { json } = await preview(text, { query: '?nonce=a"b' });

    expect(json.html).toContain('<style nonce="a&quot;b">:root{--accent:#9d174d');
  });

  it.each([
    ['is not JSON from a line on', '{\n"name": "A"\n"slug": "a"}', [[3, '']]],
    ['has a character that JSON has not', `{\n"name": "A",\n\n"slug": x,\n"fields": []}`, [[4, '']]],
    ['ends too early', '{\n"name": "A",\n"slug":\n', [[3, '']]],
    ['is empty', '', [[1, '']]],
    ['has a key twice', '{\n"name": "A",\n"name": "B"}', [[3, 'name']]],
    [
      'lacks properties, and has others',
      '{\n"name": "A",\n"slug": "a",\n"fields": [\n{"id": "1"},\n{"id": "b", "type": "text",\n"max": 3}]}',
      [
        [1, 'delivery'],
        [5, 'fields.0.id'],
        [5, 'fields.0.type'],
        [7, 'fields.1.max'],
      ],
    ],
    ['is no object', '[]', [[1, '']]],
  ])('names the line of each problem of a text that %s', async (_, text, places) => {
    const { status, json } = await preview(text);

    expect([status, json.html]).toEqual([200, undefined]);
    expect(json.problems.map(({ line, path }: { line: number; path: string }) => [line, path])).toEqual(
      places,
    );
  });

  it('ignores what editors need, and stores nothing', async () => {
    const before = await service.get('/v1/forms?limit=100');
    const { $schema: _, ...form } = JSON.parse(examples[0]?.text ?? '');

    const { json } = await preview(JSON.stringify({ $schema: `${service.url}/schemas/form.json`, ...form }));

    expect(json.problems).toEqual([]);
    expect((await service.get('/v1/forms?limit=100')).json).toEqual(before.json);
  });

  it('is refused for other origins, by the page and by the call', async () => {
    const { text = '' } = examples[0] ?? {};
    const foreign = await preview(text, { origin: 'https://other.example' });
    const none = await preview(text, { origin: null });
    const call = service.client(HostedService, 'connect', null, { origin: 'https://other.example' });
    const refused = await call.previewForm({ text }).catch((error: ConnectError) => error.code);

    expect([foreign.status, foreign.json.error.reason]).toEqual([401, 'origin_not_allowed']);
    expect([none.status, none.json.error.reason]).toEqual([401, 'origin_not_allowed']);
    expect(refused).toBe(Code.PermissionDenied);
  });

  it('needs a key only where creating a form does, and checks the one that it gets', async () => {
    await using closed = await startService({ env: { ALLOW_PUBLIC_CREATE: 'false' } });
    const reader = await closed.givenKey(['forms:read']);
    const { text = '' } = examples[0] ?? {};
    const asked = async (key: string | null) => {
      const { status, json } = await preview(text, { to: closed, key });
      return [status, json.error?.reason];
    };

    expect(await asked(null)).toEqual([401, 'missing_key']);
    expect(await asked(closed.key)).toEqual([200, undefined]);
    expect(await asked('hfs_wrong')).toEqual([401, 'invalid_key']);
    expect(await asked(reader)).toEqual([401, 'insufficient_scope']);
  });

  it('takes 64 KiB', async () => {
    const most = await preview(' '.repeat(MAX_KEYLESS_BYTES - 16));
    const more = await preview(' '.repeat(MAX_KEYLESS_BYTES + 1));

    expect([most.status, more.status]).toEqual([200, 413]);
  });

  it('is made 60 times a minute for a client', async () => {
    await using limited = await startService({ env: { RATE_LIMIT: 'on' } });
    const { limits } = policies.get(HostedService.method.previewForm) ?? {};

    for (let made = 0; made < 60; made++) expect((await preview('{}', { to: limited })).status).toBe(200);
    const refused = await preview('{}', { to: limited });

    expect(limits).toMatchObject({ client: 60, per: 'minute' });
    expect([refused.status, refused.json.error.reason]).toEqual([429, 'rate_limited']);
    expect(refused.json.error.retry_after).toBeGreaterThan(0);
  });

  it('is at no address: opening the page shows none', async () => {
    const opened = await service.get('/new?step=1&nonce=a');

    expect([opened.status, opened.text.includes('<iframe')]).toEqual([200, false]);
  });
});
