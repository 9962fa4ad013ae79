import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  DeliveryChannel,
  DeliveryStatus,
  EventType,
  WebhookEvent,
  WebhooksService,
} from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { newId } from '../../../src/domain/ids.ts';
import { insertTestDelivery } from '../../../src/store/deliveries/enqueue.ts';
import { engines } from '../../support/database.ts';
import { endDelivery } from '../../support/delivery.ts';
import { failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const url = 'https://example.com/hook';
const events = [WebhookEvent.SUBMISSION_CREATED];
const unknownWebhook = 'wh_00000000000000000000000000';

describe.each(engines)('WebhooksService on %s', (engine) => {
  let rpc: TestServices;
  let now = Date.now();

  beforeAll(async () => {
    rpc = await startServices(engine, { now: () => now });
  });

  afterAll(() => rpc[Symbol.asyncDispose]());

  const webhooks = (key?: string) => createClient(WebhooksService, rpc.as(key));

  async function givenWebhook(key = rpc.key, formId = ''): Promise<string> {
    const { webhook } = await webhooks(key).createWebhook({ url, events, formId });
    return webhook?.id ?? '';
  }

  describe('CreateWebhook', () => {
    it('shows a secret only if it made it, and keeps it sealed', async () => {
      const made = await webhooks(rpc.key).createWebhook({ url, events });
      const given = await webhooks(rpc.key).createWebhook({ url, events, secret: 'my own secret' });

      expect(made.secret).toMatch(/^whsec_/);
      expect(given.secret).toBe('');
      expect(made.webhook).toMatchObject({ url, events, formId: '', active: true, disabledReason: '' });
      const [row] = await rpc.database.select('select secret from webhooks where id = $1', [
        given.webhook?.id,
      ]);
      expect(row?.secret).not.toContain('my own secret');
      expect(rpc.secrets.open(String(row?.secret))).toBe('my own secret');
    });

    it('refuses bad URLs, events and secrets, all at once', async () => {
      const refused = async (request: object) =>
        (await failureOf(webhooks(rpc.key).createWebhook({ url, events, ...request }))).violations;

      expect(await refused({ url: '', events: [], secret: 'short' })).toEqual([
        ['url', 'invalid_type'],
        ['events', 'too_small'],
        ['secret', 'too_small'],
      ]);
      for (const bad of ['http://example.com', 'https://a:b@example.com', 'https://127.0.0.1/', 'x\0']) {
        expect(await refused({ url: bad })).toEqual([['url', 'invalid_string']]);
      }
      expect(await refused({ events: [0, 99, 1, 1] })).toEqual([
        ['events[0]', 'invalid_enum_value'],
        ['events[1]', 'invalid_enum_value'],
        ['events[3]', 'custom'],
      ]);
      expect(await refused({ secret: 'x'.repeat(257) })).toEqual([['secret', 'too_big']]);
    });

    it('binds to forms of the project only', async () => {
      const form = await rpc.givenForm(rpc.key);
      const bound = await webhooks(rpc.key).createWebhook({ url, events, formId: form.id });

      expect(bound.webhook?.formId).toBe(form.id);
      const elsewhere = await rpc.givenKey();
      expect(
        await failureOf(webhooks(elsewhere).createWebhook({ url, events, formId: form.id })),
      ).toMatchObject({
        reason: 'NOT_FOUND',
      });
    });
  });

  it('refuses strangers and keys without the scope on every call', async () => {
    const weak = await rpc.givenKey({ scopes: ['forms:read'] });
    const reader = await rpc.givenKey({ scopes: ['webhooks:read', 'submissions:read'] });
    const writes = (key?: string) => [
      () => webhooks(key).createWebhook({ url, events }),
      () => webhooks(key).updateWebhook({}),
      () => webhooks(key).deleteWebhook({}),
      () => webhooks(key).rotateWebhookSecret({}),
      () => webhooks(key).testWebhook({}),
      () => webhooks(key).replayDelivery({}),
      () => webhooks(key).replayDeliveries({}),
    ];
    const reads = (key?: string) => [
      () => webhooks(key).listWebhooks({}),
      () => webhooks(key).getWebhook({}),
      () => webhooks(key).listDeliveries({}),
      () => webhooks(key).listFormDeliveries({}),
    ];
    const reasons = async (calls: (() => Promise<unknown>)[]) =>
      new Set(await Promise.all(calls.map(async (call) => (await failureOf(call())).reason)));

    expect(await reasons([...writes(), ...reads()])).toEqual(new Set(['MISSING_KEY']));
    expect(await reasons([...writes(weak), ...reads(weak)])).toEqual(new Set(['INSUFFICIENT_SCOPE']));
    expect(await reasons(writes(reader))).toEqual(new Set(['INSUFFICIENT_SCOPE']));
  });

  it('finds nothing of another project, and no made-up ids', async () => {
    const id = await givenWebhook();
    const { delivery } = await webhooks(rpc.key).testWebhook({ webhookId: id });
    const elsewhere = webhooks(await rpc.givenKey());

    expect((await elsewhere.listWebhooks({})).webhooks).toEqual([]);
    for (const webhookId of [id, unknownWebhook, 'x\0']) {
      const failures = [
        elsewhere.getWebhook({ webhookId }),
        elsewhere.updateWebhook({ webhookId, active: false }),
        elsewhere.deleteWebhook({ webhookId }),
        elsewhere.rotateWebhookSecret({ webhookId }),
        elsewhere.testWebhook({ webhookId }),
        elsewhere.listDeliveries({ webhookId }),
        elsewhere.replayDeliveries({ webhookId }),
        elsewhere.replayDelivery({ deliveryId: delivery?.id ?? '' }),
      ];
      const reasons = await Promise.all(failures.map(async (call) => (await failureOf(call)).reason));
      expect(new Set(reasons)).toEqual(new Set(['NOT_FOUND']));
    }
    expect((await webhooks(rpc.key).getWebhook({ webhookId: id })).webhook?.active).toBe(true);
  });

  it('tests a webhook of a project without forms about one that is made up', async () => {
    const key = await rpc.givenKey();
    const webhookId = await givenWebhook(key);

    const { delivery } = await webhooks(key).testWebhook({ webhookId });

    const [event] = await rpc.database.select('select body from events where id = $1', [
      delivery?.eventId ?? '',
    ]);
    expect(JSON.parse(String(event?.body)).data).toEqual({
      webhookId,
      formId: 'form_example',
      answers: { name: 'Someone', email: 'someone@example.com', message: 'Some text.' },
    });
  });

  it('lists the webhooks of the project page by page, newest first', async () => {
    const key = await rpc.givenKey();
    const forms = await Promise.all([1, 2, 3].map(() => rpc.givenForm(key)));
    const ids: string[] = [];
    for (let count = 1; count <= 21; count += 1) {
      now += 1;
      ids.unshift(await givenWebhook(key, forms[count % forms.length]?.id));
    }
    const list = (request: object) => webhooks(key).listWebhooks(request);

    const first = await list({ pageSize: 20 });
    const second = await list({ pageSize: 20, pageToken: first.nextPageToken });
    const all = await list({});
    const most = await list({ pageSize: 500 });

    expect(first.webhooks.map(({ id }) => id)).toEqual(ids.slice(0, 20));
    expect(second.webhooks.map(({ id }) => id)).toEqual(ids.slice(20));
    expect([second.nextPageToken, all.nextPageToken, all.webhooks.length]).toEqual(['', '', 21]);
    expect(most).toEqual(all);
    expect(await failureOf(list({ pageToken: 'key_1' }))).toMatchObject({ reason: 'BAD_REQUEST' });
    expect(await failureOf(list({ pageSize: -1 }))).toMatchObject({ reason: 'BAD_REQUEST' });
  });

  it('changes what is named, and turns a webhook off and on', async () => {
    const webhookId = await givenWebhook();
    const change = webhooks(rpc.key).updateWebhook;

    const moved = await change({ webhookId, url: 'https://example.com/new' });
    const off = await change({ webhookId, active: false });
    const on = await change({ webhookId, active: true, events: [WebhookEvent.SESSION_EXPIRED] });

    expect(moved.webhook).toMatchObject({ url: 'https://example.com/new', events, active: true });
    expect(off.webhook).toMatchObject({ active: false, disabledReason: 'Turned off by its owner' });
    expect(off.webhook?.disableTime).toBeDefined();
    expect(on.webhook).toMatchObject({ active: true, disabledReason: '', events: [2] });
    expect(await failureOf(change({ webhookId, url: 'https://10.0.0.1/' }))).toMatchObject({
      violations: [['url', 'invalid_string']],
    });
  });

  it('leaves what it sends as it is when a webhook is turned on again', async () => {
    const key = await rpc.givenKey();
    const webhookId = await givenWebhook(key);
    const change = webhooks(key).updateWebhook;

    await change({ webhookId, traceparent: true, active: false });
    const on = await change({ webhookId, active: true });
    await change({ webhookId, active: false });
    const changedOn = await change({ webhookId, active: true, traceparent: false });

    expect([on.webhook?.traceparent, changedOn.webhook?.traceparent]).toEqual([true, false]);
  });

  it('deletes a webhook with what waits for it, and its history', async () => {
    const webhookId = await givenWebhook();
    const { delivery } = await webhooks(rpc.key).testWebhook({ webhookId });

    await webhooks(rpc.key).deleteWebhook({ webhookId });

    expect(await failureOf(webhooks(rpc.key).getWebhook({ webhookId }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect(await failureOf(webhooks(rpc.key).listDeliveries({ webhookId }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect(
      await failureOf(webhooks(rpc.key).replayDelivery({ deliveryId: delivery?.id ?? '' })),
    ).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect(await failureOf(webhooks(rpc.key).deleteWebhook({ webhookId }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect(
      await rpc.database.select('select 1 from delivery_queue where webhook_id = $1', [webhookId]),
    ).toEqual([]);
  });

  it('rotates the secret at once or later, and refuses other times', async () => {
    const webhookId = await givenWebhook();
    const rotate = (effectiveIn?: { seconds: bigint; nanos?: number }) =>
      webhooks(rpc.key).rotateWebhookSecret({ webhookId, ...(effectiveIn && { effectiveIn }) });

    const atOnce = await rotate();
    const later = await rotate({ seconds: 60n });

    expect(later.secret).not.toBe(atOnce.secret);
    expect(Number(later.effectiveTime?.seconds)).toBe(Math.floor(now / 1000) + 60);
    expect(await failureOf(rotate({ seconds: -1n }))).toMatchObject({
      violations: [['effective_in', 'too_small']],
    });
    expect(await failureOf(rotate({ seconds: 604_801n }))).toMatchObject({
      violations: [['effective_in', 'too_big']],
    });
    expect(await failureOf(rotate({ seconds: 1n, nanos: 5 }))).toMatchObject({
      violations: [['effective_in', 'invalid_type']],
    });
  });

  it('tests a webhook with answers made up for the form', async () => {
    const key = await rpc.givenKey();
    const form = await rpc.givenForm(key);
    const webhookId = await givenWebhook(key);
    const notifications = rpc.notifications();

    const { delivery } = await webhooks(key).testWebhook({ webhookId });

    expect(delivery).toMatchObject({
      webhookId,
      eventType: EventType.WEBHOOK_TEST,
      status: DeliveryStatus.PENDING,
      channel: DeliveryChannel.WEBHOOK,
      attemptCount: 0,
    });
    expect(rpc.notifications()).toBe(notifications + 1);
    const [row] = await rpc.database.select('select body from events where id = $1', [delivery?.eventId]);
    expect(JSON.parse(String(row?.body)).data).toEqual({
      webhookId,
      formId: form.id,
      answers: { email: 'someone@example.com' },
    });
  });

  it('lists deliveries page by page, newest first, by status', async () => {
    const webhookId = await givenWebhook();
    const ids: string[] = [];
    for (const status of ['pending', 'failed', 'delivered'])
      ids.unshift(await givenDelivery(webhookId, status));
    const list = (request: object) => webhooks(rpc.key).listDeliveries({ webhookId, ...request });

    const first = await list({ pageSize: 2 });
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
    const failed = await list({ status: DeliveryStatus.FAILED });

    expect([...first.deliveries, ...second.deliveries].map(({ id }) => id)).toEqual(ids);
    expect(second.nextPageToken).toBe('');
    expect(failed.deliveries.map(({ id }) => id)).toEqual([ids[1]]);
    expect(await failureOf(list({ pageToken: 'form_1' }))).toMatchObject({ reason: 'BAD_REQUEST' });
  });

  it('replays failed and delivered deliveries, and refuses pending ones', async () => {
    const webhookId = await givenWebhook();
    const failed = await givenDelivery(webhookId, 'failed');
    const delivered = await givenDelivery(webhookId, 'delivered');
    const replay = (deliveryId: string) => webhooks(rpc.key).replayDelivery({ deliveryId });

    expect((await replay(failed)).delivery?.status).toBe(DeliveryStatus.PENDING);
    expect((await replay(delivered)).delivery?.status).toBe(DeliveryStatus.PENDING);
    expect(await failureOf(replay(failed))).toMatchObject({ reason: 'CONFLICT' });
    expect(await failureOf(replay('dlv_00000000000000000000000000'))).toMatchObject({ reason: 'NOT_FOUND' });
  });

  it('does not take a fault of the database for a missing delivery', async () => {
    const deliveryId = await givenDelivery(await givenWebhook(), 'failed');
    await rpc.database.execute('alter table webhooks rename to webhooks_away');

    const failure = await failureOf(webhooks(rpc.key).replayDelivery({ deliveryId }));
    await rpc.database.execute('alter table webhooks_away rename to webhooks');

    expect(failure).toMatchObject({ reason: 'INTERNAL' });
  });

  it('replays all failed deliveries of a webhook made in a span of time', async () => {
    const webhookId = await givenWebhook();
    await givenDelivery(webhookId, 'failed');
    const from = now;
    await givenDelivery(webhookId, 'failed');
    await givenDelivery(webhookId, 'delivered');

    const some = await webhooks(rpc.key).replayDeliveries({
      webhookId,
      createdAfter: { seconds: BigInt(Math.ceil(from / 1000)), nanos: 0 },
    });
    const rest = await webhooks(rpc.key).replayDeliveries({ webhookId });

    expect([some.count, rest.count]).toEqual([1, 1]);
  });

  /** One second after the last, so that spans of whole seconds can tell them apart. */
  async function givenDelivery(webhookId: string, status: string): Promise<string> {
    now += 1000;
    const [webhook] = await rpc.database.select('select project_id from webhooks where id = $1', [webhookId]);
    const projectId = String(webhook?.project_id);
    const createdAt = new Date(now);
    const event = {
      id: newId('evt', now),
      projectId,
      formId: '',
      type: 'webhook.test',
      body: '{}',
      createdAt,
    };
    const delivery = { id: newId('dlv', now), webhookId, url, keyless: false };
    await insertTestDelivery(rpc.database, { event, delivery });
    if (status !== 'pending') await endDelivery(rpc.database, delivery.id, status);
    return delivery.id;
  }
});
