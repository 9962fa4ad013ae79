import { createPublicKey, verify } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routes } from '../../../src/gateway/router.ts';
import { oneEngine } from '../../support/database.ts';
import { type Received, startReceiver } from '../../support/receiver.ts';
import { refusedAs } from '../../support/replies.ts';
import { type PublishedForm, startService, type TestService } from '../../support/server.ts';

const events = ['submission.created'];

describe.each(oneEngine('pglite'))('what webhooks ask for, on %s', (engine) => {
  let service: TestService;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let other: Awaited<ReturnType<typeof startReceiver>>;
  let form: PublishedForm;

  beforeAll(async () => {
    receiver = await startReceiver();
    other = await startReceiver();
    service = await startService({ engine, env: { WEBHOOK_RETRY_SCHEDULE: '0' } });
    const options = ['sales', 'help'].map((value) => ({ label: value, value }));
    const fields = [
      { id: 'topic', type: 'select', options },
      { id: 'topics', type: 'multi_select', options },
      { id: 'count', type: 'number' },
      { id: 'agree', type: 'boolean' },
      { id: 'text', type: 'text' },
    ];
    form = await service.givenPublishedForm({ fields });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });

  const register = (body: object) =>
    service.post('/v1/webhooks', { url: `${receiver.url}/hook`, events, form_id: form.id, ...body });
  const submit = (answers: object, source = 'api') =>
    service.post(`/v1/forms/${form.id}/submissions`, { answers, source });
  const remove = (id: string) => service.delete(`/v1/webhooks/${id}`);

  /** Sends a test event and returns how it arrived. */
  async function test(id: string, at = receiver): Promise<Received> {
    const before = at.received.length;
    await service.post(`/v1/webhooks/${id}/test`);
    const received = await at.expectRequests(before + 1);
    return received.at(-1) as Received;
  }

  it('shows how libraries read the secret', async () => {
    const formats = [];
    for (const secret of [undefined, 'whsec_AAAA', 'whsec_not base64', 'my own secret']) {
      const { json } = await register({ ...(secret !== undefined && { secret }) });
      formats.push((await service.get(`/v1/webhooks/${json.webhook.id}`)).json.webhook.secret_format);
      await remove(json.webhook.id);
    }

    expect(formats).toEqual(['whsec', 'whsec', 'raw', 'raw']);
  });

  describe('headers', () => {
    const headers = { Authorization: 'Bearer of-the-receiver', 'X-Team': 'a\tb c' };

    it('go with every delivery; their values are kept sealed and never shown', async () => {
      const made = await register({ headers });
      const { id } = made.json.webhook;

      const { headers: sent } = await test(id);

      const read = await service.get(`/v1/webhooks/${id}`);
      const listed = await service.get('/v1/webhooks');
      const [row] = await service.database.select('select headers from webhooks where id = $1', [id]);
      await remove(id);
      expect([sent.authorization, sent['x-team']]).toEqual(['Bearer of-the-receiver', 'a\tb c']);
      expect(sent['content-type']).toBe('application/json');
      expect(read.json.webhook.header_names).toEqual(['Authorization', 'X-Team']);
      expect(String(row?.headers)).toMatch(/^v2\./);
      for (const text of [made.text, read.text, listed.text, String(row?.headers)]) {
        expect(text).not.toContain('of-the-receiver');
      }
    });

    it.each([
      ['Content-Type', 'text/plain'],
      ['user-agent', 'x'],
      ['Host', 'example.com'],
      ['Content-Length', '1'],
      ['webhook-signature', 'v1,x'],
      ['X-Service-Signature', 't=1, v1=0'],
      ['traceparent', '00-0-0-00'],
      ['Connection', 'close'],
      ['Transfer-Encoding', 'chunked'],
      ['Upgrade', 'h2c'],
      ['TE', 'trailers'],
      ['Proxy-Authorization', 'x'],
      ['a b', 'x'],
      ['', 'x'],
      ['X-A', 'a\r\nX-B: b'],
      ['X-A', ' a'],
      ['X-A', ''],
      ['X-A', 'ä'],
    ])('may not be %j: %j', async (name, value) => {
      const refused = await register({ headers: { [name]: value } });

      expect([refused.status, refusedAs(refused).map(([path]) => path.split(/[.[]/)[0])]).toEqual([
        422,
        ['headers'],
      ]);
    });

    it('are at most ten and 4,096 bytes, each named once', async () => {
      const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`X-${n}`, 'x']));
      const [fits, tooLong] = [4091, 4092].map((length) => ({ 'X-Big': 'x'.repeat(length) }));

      expect(refusedAs(await register({ headers: eleven }))).toEqual([['headers', 'too_big']]);
      expect(refusedAs(await register({ headers: tooLong }))).toEqual([['headers', 'too_big']]);
      expect(refusedAs(await register({ headers: { 'X-A': '1', 'x-a': '2' } }))).toEqual([
        ['headers.x-a', 'custom'],
      ]);
      const made = await register({ headers: fits });
      await remove(made.json.webhook.id);
      expect(made.status).toBe(201);
    });

    it('stay with the origin that they were given for', async () => {
      const { id } = (await register({ headers })).json.webhook;
      const change = (body: object) => service.patch(`/v1/webhooks/${id}`, body);

      const elsewhere = await change({ url: `${other.url}/hook` });
      const within = await change({ url: `${receiver.url}/another` });
      const kept = (await test(id)).headers.authorization;
      const given = await change({ url: `${other.url}/hook`, headers: { Authorization: 'Bearer new' } });
      const moved = (await test(id, other)).headers.authorization;
      // What was made for another origin: a row that the definition of a form has moved.
      await service.database.execute('update webhooks set url = $2 where id = $1', [id, receiver.url]);
      const without = (await test(id)).headers.authorization;
      const removed = await change({ headers: null });
      await remove(id);

      expect(refusedAs(elsewhere)).toEqual([['headers', 'custom']]);
      expect([within.status, given.status]).toEqual([200, 200]);
      expect([kept, moved, without]).toEqual(['Bearer of-the-receiver', 'Bearer new', undefined]);
      expect(removed.json.webhook).not.toHaveProperty('header_names');
    });

    it('make another request of one with the same key', async () => {
      const call = (body: object) =>
        service.post(
          '/v1/webhooks',
          { url: receiver.url, events, ...body },
          {
            headers: { 'idempotency-key': `headers-${engine}` },
          },
        );

      const first = await call({ headers });
      const again = await call({ headers });
      const changed = await call({ headers: { ...headers, Authorization: 'another' } });
      await remove(first.json.webhook.id);

      expect(again.json).toEqual(first.json);
      expect(changed.status).toBe(409);
    });
  });

  describe('filters', () => {
    it.each([
      ['a source', { source: 'website' }, [{ answers: {}, source: 'website' }], [{ answers: {} }]],
      [
        'a text',
        { field_id: 'topic', value: 'sales' },
        [{ answers: { topic: 'sales', text: 'x' } }],
        [{ answers: { topic: 'help' } }, { answers: {} }, { answers: { text: 'sales' } }],
      ],
      [
        'one of a list',
        { field_id: 'topics', value: 'sales' },
        [{ answers: { topics: ['help', 'sales'] } }],
        [{ answers: { topics: ['help'] } }],
      ],
      ...['Infinity', '-Infinity', '1e999', 'NaN'].map(
        (value): [string, object, { answers: object; source?: string }[], { answers: object }[]] => [
          `the text ${value}`,
          { field_id: 'text', value },
          [{ answers: { text: value } }],
          [{ answers: { text: 'sales' } }],
        ],
      ),
      [
        'a text in another normal form of Unicode',
        { field_id: 'text', value: 'Café' },
        ['Café', 'Café'.normalize('NFD')].map((text) => ({ answers: { text } })),
        [{ answers: { text: 'Cafe' } }],
      ],
      [
        'a text of two characters',
        { field_id: 'text', value: 'Café'.normalize('NFD') },
        ['Café', 'Café'.normalize('NFD')].map((text) => ({ answers: { text } })),
        [{ answers: { text: 'Cafe' } }],
      ],
      [
        'a number',
        { field_id: 'count', value: 2 },
        [{ answers: { count: 2 } }, { answers: { count: 2.0 } }],
        [{ answers: { count: 20 } }],
      ],
      [
        'a boolean',
        { field_id: 'agree', value: false },
        [{ answers: { agree: false } }],
        [{ answers: { agree: true } }, { answers: {} }],
      ],
      [
        'both',
        { source: 'website', field_id: 'topic', value: 'sales' },
        [{ answers: { topic: 'sales' }, source: 'website' }],
        [{ answers: { topic: 'sales' } }, { answers: { topic: 'help' }, source: 'website' }],
      ],
    ])('by %s let the webhook receive what fits alone', async (_name, filter, wanted, unwanted) => {
      const { id } = (await register({ filter })).json.webhook;
      const shown = (await service.get(`/v1/webhooks/${id}`)).json.webhook.filter;

      // At the same time, so that one commit has several of them.
      const all: { answers: object; source?: string }[] = [...unwanted, ...wanted];
      const ids = await Promise.all(
        all.map(async ({ answers, source }) => (await submit(answers, source)).json),
      );

      const { deliveries } = (await service.get(`/v1/webhooks/${id}/deliveries`)).json;
      await remove(id);
      expect(shown).toEqual(filter);
      expect(ids.every(({ ok }) => ok)).toBe(true);
      expect(deliveries).toHaveLength(wanted.length);
    });

    it('leave other webhooks and other events alone, and can be changed and removed', async () => {
      const plain = (await register({})).json.webhook.id;
      const all = [...events, 'submission.deleted'];
      const { id } = (await register({ events: all, filter: { source: 'website' } })).json.webhook;
      const countOf = async (webhook: string) =>
        (await service.get(`/v1/webhooks/${webhook}/deliveries`)).json.deliveries.length;

      const { submission_id: first } = (await submit({})).json;
      const counts = [await countOf(plain), await countOf(id)];
      await service.delete(`/v1/submissions/${first}`);
      counts.push(await countOf(id));
      const removed = await service.patch(`/v1/webhooks/${id}`, { filter: null });
      await submit({});
      counts.push(await countOf(id));
      await remove(plain);
      await remove(id);

      expect(counts).toEqual([1, 0, 1, 2]);
      expect(removed.json.webhook).not.toHaveProperty('filter');
    });

    it('name a field and a value together', async () => {
      const refused = async (filter: object) => refusedAs(await register({ filter }));

      expect(await refused({ field_id: 'topic' })).toEqual([['filter.value', 'invalid_type']]);
      expect(await refused({ value: 'sales' })).toEqual([['filter.field_id', 'invalid_type']]);
      expect(await refused({ source: 'x'.repeat(201) })).toEqual([['filter.source', 'too_big']]);
      expect(await refused({ field_id: 'topic', value: 'x'.repeat(1001) })).toEqual([
        ['filter.value', 'too_big'],
      ]);
      expect(await refused({ field_id: 'topic', value: ['sales'] })).toEqual([
        ['filter.value', 'invalid_union'],
      ]);
    });
  });

  describe('Ed25519', () => {
    const isSigned = ({ headers, body }: Received, publicKey: string) => {
      const x = Buffer.from(publicKey.replace('whpk_', ''), 'base64').toString('base64url');
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      const [v1, v1a, ...others] = String(headers['webhook-signature']).split(' ');
      const id = String(headers['webhook-id']);
      const signed = Buffer.from(`${id}.${String(headers['webhook-timestamp'])}.${body}`);
      expect([v1?.slice(0, 3), v1a?.slice(0, 4), others]).toEqual(['v1,', 'v1a,', []]);
      return verify(null, signed, key, Buffer.from(String(v1a).slice(4), 'base64'));
    };

    it('signs beside the secret where a webhook asks for it, by a key that anybody may read', async () => {
      const { id, public_key: shown } = (await register({ ed25519: true })).json.webhook;
      const wellKnown = `/.well-known/webhooks/${id}`;

      const read = await service.get(wellKnown, { key: null });
      const sent = await test(id);
      const { secret } = (await service.post(`/v1/webhooks/${id}/rotate-secret`, {})).json;
      const rotated = (await service.get(wellKnown, { key: null })).json;
      await service.patch(`/v1/webhooks/${id}`, { ed25519: false });
      const off = await service.get(wellKnown, { key: null });
      const plain = await test(id);
      await service.patch(`/v1/webhooks/${id}`, { ed25519: true });
      const anew = (await service.get(wellKnown, { key: null })).json;
      await remove(id);
      const gone = await service.get(wellKnown, { key: null });

      expect(read.json).toEqual({ public_key: shown });
      expect(shown).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
      expect(read.headers.get('cache-control')).toBe('public, max-age=300');
      expect(isSigned(sent, shown)).toBe(true);
      expect(isSigned({ ...sent, body: `${sent.body} ` }, shown)).toBe(false);
      expect(secret).toMatch(/^whsec_/);
      expect(rotated).toEqual(read.json);
      expect([off.status, gone.status]).toEqual([404, 404]);
      expect(String(plain.headers['webhook-signature'])).not.toContain('v1a');
      expect(anew.public_key).not.toBe(shown);
      expect(isSigned(sent, anew.public_key)).toBe(false);
    });

    it('has no key to show of webhooks without it', async () => {
      const { id } = (await register({})).json.webhook;

      const statuses = [];
      for (const each of [id, 'wh_00000000000000000000000000', 'x']) {
        statuses.push((await service.get(`/.well-known/webhooks/${each}`, { key: null })).status);
      }
      await remove(id);

      expect(statuses).toEqual([404, 404, 404]);
      expect(routes.some(({ path }) => path === '/.well-known/webhooks/:id')).toBe(true);
    });
  });
});
