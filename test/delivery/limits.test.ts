import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { SecretBox } from '../../src/domain/secrets/secret-key.ts';
import type { Database } from '../../src/store/database/database.ts';
import { replayDeliveries, replayDelivery } from '../../src/store/deliveries/replay.ts';
import { findWebhook } from '../../src/store/webhooks/webhooks.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
  testKey,
  testSecret,
} from '../support/delivery.ts';
import { type Received, startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const otherSecret = `whsec_${Buffer.from('another one of 24 bytes.').toString('base64')}`;

describe.each(engines)('limits of webhooks on %s', (engine) => {
  it('makes three attempts for a form made without a key', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, { ...deliveredByWebhook, createdBy: 'public' });
    await givenWebhook(database, form, { url: receiver.url, formId: form.id, keyless: true });
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { schedule: [0, 0, 0, 0, 0, 0] } });

    const [logged] = await expectFinished(database, form, 1);

    expect(logged?.delivery).toMatchObject({ status: 'failed', attemptCount: 3 });
    expect(receiver.received).toHaveLength(3);
  });

  it('turns a webhook without a key off after ten failures, and makes no attempt for what still waits', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, { ...deliveredByWebhook, createdBy: 'public' });
    const webhook = await givenWebhook(database, form, { url: receiver.url, formId: form.id, keyless: true });
    await givenSubmissions(database, form, [{}, {}, {}, {}, {}]);
    await using delivery = startDelivery(database, { settings: { schedule: [0, 0, 3600] } });

    await expect
      .poll(() => findWebhook(database, form.projectId, webhook.id))
      .toMatchObject({ active: false, disabledReason: 'Its first 10 attempts failed.' });
    await database.execute(`update delivery_queue set due_at = now() - interval '1 second'`);
    delivery.notify();
    const logged = await expectFinished(database, form, 5);

    expect(logged.map(({ delivery: { status, attemptCount } }) => [status, attemptCount])).toEqual(
      Array(5).fill(['failed', 2]),
    );
    expect(receiver.received).toHaveLength(10);
  });

  it('calls one address sixty times a minute for all forms made without a key, at any port; the rest waits', async () => {
    await using database = await openTestDatabase(engine);
    await using first = await startReceiver();
    await using second = await startReceiver();
    for (const receiver of [first, second]) {
      const form = await givenForm(database, deliveredByWebhook);
      await givenWebhook(database, form, { url: receiver.url, formId: form.id, keyless: true });
      await givenSubmissions(
        database,
        form,
        Array.from({ length: 40 }, () => ({})),
      );
    }
    await using _ = startDelivery(database);

    const waiting = () => database.select(`select id from delivery_queue where error like 'Waits:%'`);
    await until(async () => (await waiting()).length === 20);

    await until(async () => (await finished(database)) === 60);
    expect(first.received.length + second.received.length).toBe(60);
  });

  it('turns a webhook off after five days without a success, and mails the owners of forms made with a key', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, deliveredByWebhook);
    const { projectId } = form;
    await givenForm(database, { projectId, createdBy: 'public', ownerEmail: 'stranger@example.com' });
    const webhook = await givenWebhook(database, form, {
      url: `${receiver.url}/secret-path`,
      failingSince: new Date(Date.now() - 5 * 24 * 3600 * 1000 - 1000),
      lastSuccessAt: new Date(0),
    });
    await givenSubmissions(database, form, [{}]);
    await using delivery = startDelivery(database, { settings: { schedule: [0] } });

    const logged = await expectFinished(database, form, 2);

    expect(Object.fromEntries(logged.map(({ delivery }) => [delivery.kind, delivery.status]))).toEqual({
      'submission.created': 'failed',
      webhook_off: 'delivered',
    });
    const mails = readdirSync(delivery.options.settings.mailDir);
    const [mail = ''] = mails.map((name) =>
      readFileSync(join(delivery.options.settings.mailDir, name), 'utf8'),
    );
    expect(mails).toHaveLength(1);
    expect(mail).toContain('To: owner@example.com');
    expect(mail).not.toContain('secret-path');
    expect(await findWebhook(database, form.projectId, webhook.id)).toMatchObject({
      active: false,
      disabledReason: 'It has failed for five days without a success.',
    });
  });

  it('goes on storing results while a webhook is being turned off', async () => {
    await using database = await openTestDatabase(engine);
    await using failing = await startReceiver((_, response) => void response.writeHead(500).end());
    await using working = await startReceiver();
    const held = Promise.withResolvers<void>();
    const turningOff = Promise.withResolvers<void>();
    const slow: Database = {
      ...database,
      async transaction(work) {
        turningOff.resolve();
        await held.promise;
        return database.transaction(work);
      },
    };
    const [gone, other] = [
      await givenForm(database, deliveredByWebhook),
      await givenForm(database, deliveredByWebhook),
    ];
    const long = { failingSince: new Date(Date.now() - 6 * 24 * 3600 * 1000), lastSuccessAt: new Date(0) };
    const webhook = await givenWebhook(database, gone, { url: failing.url, ...long });
    await givenWebhook(database, other, { url: working.url });
    await using delivery = startDelivery(slow);
    await givenSubmissions(database, gone, [{}]);
    delivery.notify();
    await turningOff.promise;

    await givenSubmissions(database, other, [{}]);
    delivery.notify();
    const [stored] = await expectFinished(database, other, 1);
    held.resolve();

    expect(stored?.delivery.status).toBe('delivered');
    await expect
      .poll(() => findWebhook(database, gone.projectId, webhook.id))
      .toMatchObject({ active: false });
  });

  it('waits as long as Retry-After asks', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver(({ count }, response) => {
      if (count === 1) response.writeHead(429, { 'retry-after': '3600' }).end();
      else response.writeHead(204).end();
    });
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, [{}]);
    await using delivery = startDelivery(database);

    const waits = await until(async () => {
      const [row] = await database.select(
        `select extract(epoch from due_at - now()) as seconds from delivery_queue where due_at > now()`,
      );
      return Number(row?.seconds);
    });
    await database.execute('update delivery_queue set due_at = now()');
    delivery.notify();
    const [logged] = await expectFinished(database, form, 1);

    // Until the test looks, some of it has passed.
    expect(waits).toBeGreaterThan(3_500);
    expect(waits).toBeLessThanOrEqual(3_600);
    expect(logged?.delivery.attemptCount).toBe(2);
  });

  it('signs with the secret of the moment: before, during and after a rotation', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const box = new SecretBox(testKey);
    const form = await givenForm(database, deliveredByWebhook);
    const hour = 3_600_000;
    const at = (offset: number) => ({
      nextSecret: box.seal(otherSecret),
      nextSecretAt: new Date(Date.now() + offset),
    });
    await givenWebhook(database, form, { url: `${receiver.url}/before`, ...at(hour) });
    await givenWebhook(database, form, { url: `${receiver.url}/during`, ...at(-hour) });
    await givenWebhook(database, form, { url: `${receiver.url}/after`, ...at(-25 * hour) });
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database);

    await receiver.expectRequests(3);

    const accepted = (path: string) => {
      const hit = receiver.received.find((each) => each.path === path);
      return [testSecret, otherSecret].map((secret) => hit !== undefined && isAccepted(hit, secret));
    };
    expect(accepted('/before')).toEqual([true, false]);
    expect(accepted('/during')).toEqual([true, true]);
    expect(accepted('/after')).toEqual([false, true]);
    for (const { headers } of receiver.received) {
      expect(headers['x-service-signature']).toMatch(/^t=\d+, v1=[0-9a-f]{64}$/);
    }
  });

  it('replays with the same event and body, from the beginning of the schedule, and counts on', async () => {
    await using database = await openTestDatabase(engine);
    let works = false;
    await using receiver = await startReceiver(
      (_, response) => void response.writeHead(works ? 204 : 500).end(),
    );
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, [{}, {}, {}]);
    await using delivery = startDelivery(database, { settings: { schedule: [0, 0] } });
    const [first] = await expectFinished(database, form, 3);
    const one = { projectId: form.projectId, id: first?.delivery.id ?? '' };

    expect(await replayDelivery(database, { ...one, projectId: 'prj_other' })).toBe(false);
    expect(await replayDelivery(database, one)).toBe(true);
    delivery.notify();
    await expectFinished(database, form, 3);
    works = true;
    expect(await replayDeliveries(database, { webhookId: webhook.id })).toEqual({ count: 3 });
    expect(await replayDeliveries(database, { webhookId: webhook.id })).toEqual({ count: 0 });
    delivery.notify();
    const all = await expectFinished(database, form, 3);

    // Without the mails about the webhook.
    const logged = all.filter(({ delivery: each }) => each.channel === 'webhook');
    expect(logged.map(({ delivery: each }) => each.status)).toEqual(['delivered', 'delivered', 'delivered']);
    const replayed = logged.find(({ delivery: each }) => each.id === one.id);
    expect(replayed?.attempts.map(({ number, status }) => [number, status])).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'failed'],
      [4, 'failed'],
      [5, 'delivered'],
    ]);
    const hits = receiver.received.filter(
      ({ headers }) => headers['webhook-id'] === replayed?.delivery.eventId,
    );
    expect(new Set(hits.map(({ body }) => body)).size).toBe(1);
  });
});

async function finished(database: Database): Promise<number> {
  const rows = await database.select('select id from deliveries');
  return rows.length;
}

function isAccepted({ headers, body }: Received, secret: string): boolean {
  try {
    new StandardWebhook(secret).verify(
      body,
      Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, String(v)])),
    );
    return true;
  } catch {
    return false;
  }
}
