import { createHmac } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../../support/database.ts';
import { startReceiver } from '../../support/receiver.ts';
import { anIsoTime, deniedAs, id, refusedAs } from '../../support/replies.ts';
import { type PublishedForm, startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe.each(oneEngine('postgres'))('the rows of webhooks on %s', (engine) => {
  let service: TestService;
  let strict: TestService;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let form: PublishedForm;
  const events = ['submission.created'];
  const url = 'https://example.com/hook';

  beforeAll(async () => {
    receiver = await startReceiver();
    service = await startService({ engine });
    // This one keeps the rules that production has.
    strict = await startService({ engine, env: { WEBHOOK_ALLOW_PRIVATE: 'false', DELIVERY_WORKERS: '0' } });
    form = await service.givenPublishedForm();
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await strict[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
  });

  it('16: POST /v1/webhooks registers an endpoint, and shows a secret only if it made it', async () => {
    const made = await strict.post('/v1/webhooks', { url, events });
    const given = await strict.post('/v1/webhooks', { url, events, secret: 'eight ch' });

    expect(made.status).toBe(201);
    expect(made.json).toEqual({
      webhook: {
        id: id('wh'),
        url,
        events,
        form_id: null,
        active: true,
        created_at: anIsoTime,
        disabled_at: null,
        disabled_reason: null,
        secret_format: 'whsec',
      },
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
    });
    expect(Object.keys(given.json)).toEqual(['webhook']);
  });

  it('16: refuses what is no public HTTPS URL, event or secret, each at its path', async () => {
    const register = async (body: object) =>
      refusedAs(await strict.post('/v1/webhooks', { url, events, ...body }));

    for (const bad of [
      'http://example.com/',
      'https://user:word@example.com/',
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://169.254.169.254/latest',
      'https://localhost/',
      'ftp://example.com/',
      'example.com',
      '',
      `https://example.com/${'x'.repeat(2048)}`,
    ]) {
      expect([bad.slice(0, 40), (await register({ url: bad })).map(([path]) => path)]).toEqual([
        bad.slice(0, 40),
        ['url'],
      ]);
    }
    expect(await register({ events: [] })).toEqual([['events', 'too_small']]);
    expect(await register({ events: ['submission.completed'] })).toEqual([
      ['events.0', 'invalid_enum_value'],
    ]);
    expect((await register({ events: [...events, ...events] })).map(([path]) => path)).toEqual(['events.1']);
    expect(await register({ secret: 'seven c' })).toEqual([['secret', 'too_small']]);
    expect(await register({ secret: 's'.repeat(257) })).toEqual([['secret', 'too_big']]);
    const all = {
      url: 'https://127.0.0.1/',
      events: [...events, ...events],
      secret: 'seven c',
      headers: { 'Content-Type': 'text/plain' },
      filter: { field_id: 'topic' },
    };
    expect((await register(all)).map(([path]) => path)).toEqual([
      'url',
      'events.1',
      'secret',
      'headers.Content-Type',
      'filter.value',
    ]);
    expect(refusedAs(await strict.post('/v1/webhooks', {}))).toEqual([
      ['url', 'invalid_type'],
      ['events', 'invalid_type'],
    ]);
    expect(deniedAs(await strict.post('/v1/webhooks', { url, events, form_id: 'form_none' }))).toEqual([
      404,
      'not_found',
      'not_found',
    ]);
  });

  it('17, 18, 19: lists, reads and deletes webhooks, once', async () => {
    const { webhook } = (await service.post('/v1/webhooks', { url, events, form_id: form.id })).json;
    const path = `/v1/webhooks/${webhook.id}`;

    const list = await service.get('/v1/webhooks');
    const read = await service.get(path);
    const deleted = await service.delete(path);

    expect(list.status).toBe(200);
    expect(list.json.webhooks).toContainEqual(webhook);
    expect([read.status, read.json]).toEqual([200, { webhook: { ...webhook, form_id: form.id } }]);
    expect([deleted.status, deleted.json]).toEqual([200, { ok: true }]);
    for (const gone of [
      await service.get(path),
      await service.delete(path),
      await service.get(`${path}/deliveries`),
    ]) {
      expect(deniedAs(gone)).toEqual([404, 'not_found', 'not_found']);
    }
  });

  it('17: lists webhooks page by page, newest first', async () => {
    const make = async () => (await service.post('/v1/webhooks', { url, events })).json.webhook;
    const [older, newer] = [await make(), await make()];

    const first = await service.get('/v1/webhooks?limit=1');
    const second = await service.get(`/v1/webhooks?limit=1&cursor=${first.json.next_cursor}`);
    const all = await service.get('/v1/webhooks');

    expect(first.json).toEqual({ webhooks: [newer], next_cursor: newer.id });
    expect(second.json.webhooks).toEqual([older]);
    expect(all.json.next_cursor).toBeNull();
    expect(deniedAs(await service.get('/v1/webhooks?limit=0'))[0]).toBe(400);
    expect(deniedAs(await service.get('/v1/webhooks?cursor=form_1'))[0]).toBe(400);
  });

  it('20, 21: lists deliveries with their attempts, and replays one under the same event id', async () => {
    const own = await service.givenPublishedForm();
    const made = await service.post('/v1/webhooks', { url: receiver.url, events, form_id: own.id });
    const path = `/v1/webhooks/${made.json.webhook.id}/deliveries`;
    const before = receiver.received.length;
    const { submission_id: submissionId } = (
      await service.post(`/api/forms/${own.id}/submissions`, { answers: { email: 'ann@example.com' } })
    ).json;
    const delivered = async () => (await service.get(`${path}?status=delivered`)).json.deliveries;
    const [delivery] = await until(async () => ((await delivered()).length === 1 ? delivered() : undefined));

    const replay = await service.post(`/v1/webhook-deliveries/${delivery.id}/replay`);
    const hits = (await receiver.expectRequests(before + 2)).slice(before);
    await until(async () => (await delivered())[0]?.attempt_count === 2);

    expect(delivery).toEqual({
      id: id('dlv'),
      channel: 'webhook',
      webhook_id: made.json.webhook.id,
      address: null,
      event_id: id('evt'),
      event: 'submission.created',
      status: 'delivered',
      attempt_count: 1,
      created_at: anIsoTime,
      last_attempt_at: anIsoTime,
      next_attempt_at: null,
      delivered_at: anIsoTime,
      response_status: 204,
      error: null,
      attempts: [
        {
          id: id('att'),
          number: 1,
          status: 'delivered',
          response_status: 204,
          error: null,
          duration_ms: expect.any(Number),
          started_at: anIsoTime,
          response_body: null,
        },
      ],
    });
    expect([replay.status, replay.json.ok, replay.json.delivery.status]).toEqual([202, true, 'pending']);
    expect((await delivered())[0].attempts).toHaveLength(2);
    const [first, second] = hits;
    expect(second?.body).toBe(first?.body);
    expect(hits.map(({ headers }) => headers['webhook-id'])).toEqual([delivery.event_id, delivery.event_id]);
    expect(JSON.parse(first?.body ?? '')).toMatchObject({
      event: 'submission.created',
      data: { submissionId, formId: own.id, status: 'accepted', answers: { email: 'ann@example.com' } },
    });
    const signature = String(first?.headers['x-service-signature']);
    const [, time] = /^t=(\d+), ?v1=[0-9a-f]{64}$/.exec(signature) ?? [];
    const hmac = createHmac('sha256', made.json.secret).update(`${time}.${first?.body}`).digest('hex');
    expect(signature).toContain(`v1=${hmac}`);
    const headers = first?.headers as Record<string, string>;
    expect(() => new StandardWebhook(made.json.secret).verify(first?.body ?? '', headers)).not.toThrow();
  });

  it('20, 21: refuses a bad page, and a replay of what is pending or not there', async () => {
    const { webhook } = (await strict.post('/v1/webhooks', { url, events })).json;
    const path = `/v1/webhooks/${webhook.id}/deliveries`;
    const { delivery } = (await strict.post(`/v1/webhooks/${webhook.id}/test`)).json;

    const pending = await strict.post(`/v1/webhook-deliveries/${delivery.id}/replay`);
    const unknown = await strict.post('/v1/webhook-deliveries/dlv_none/replay');
    await strict.delete(`/v1/webhooks/${webhook.id}`);
    const dropped = await strict.post(`/v1/webhook-deliveries/${delivery.id}/replay`);

    expect(deniedAs(pending)).toEqual([409, 'validation_failed', 'conflict']);
    expect(deniedAs(unknown)).toEqual([404, 'not_found', 'not_found']);
    expect(deniedAs(dropped)).toEqual([404, 'not_found', 'not_found']);
    const other = (await strict.post('/v1/webhooks', { url, events })).json.webhook;
    for (const query of ['limit=0', 'status=lost', 'cursor=x']) {
      const reply = await strict.get(`${path.replace(webhook.id, other.id)}?${query}`);
      expect([query, ...deniedAs(reply)]).toEqual([query, 400, 'validation_failed', 'bad_request']);
    }
  });
});
