import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { timeOf } from '../../src/store/database/columns.ts';
import type { Database } from '../../src/store/database/database.ts';
import { NO_CAPACITY, timesOf } from '../../src/store/deliveries/fairness.ts';
import { postponeDeliveries } from '../../src/store/deliveries/postpone.ts';
import { replayDeliveries } from '../../src/store/deliveries/replay.ts';
import { listFailingWebhooks } from '../../src/store/webhooks/failing-webhooks.ts';
import { findWebhook, updateWebhook } from '../../src/store/webhooks/webhooks.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const answers = (count: number) => Array.from({ length: count }, () => ({}));

describe.each(engines)('the circuit breaker of a webhook on %s', (engine) => {
  it('opens after five failures: what waits is postponed unattempted, and goes out once the receiver answers', async () => {
    await using database = await openTestDatabase(engine);
    let works = false;
    await using receiver = await startReceiver(
      (_, response) => void response.writeHead(works ? 204 : 500).end(),
    );
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, answers(5));
    const schedule = [0, 600, 600];
    const begun = Date.now();
    await using delivery = startDelivery(database, { settings: { schedule } });

    const opened = await until(
      async () => (await findWebhook(database, form.projectId, webhook.id))?.openUntil,
    );
    const tried = receiver.received.length;
    // However long the next steps take on a busy machine.
    const [kept] = await database.execute(
      `update webhooks set open_until = now() + interval '1 minute' returning open_until`,
    );
    const openUntil = timeOf(kept?.open_until).getTime();
    await givenSubmissions(database, form, answers(3), delivery);
    const another = { capacity: () => ({ ...NO_CAPACITY, ...timesOf(schedule) }) };
    await givenSubmissions(database, form, answers(3), another);
    const postponed = await listQueue(database);
    works = true;
    await makeDue(database);
    delivery.notify();
    // Those that were attempted keep the time of their schedule.
    await until(async () => (await listQueue(database)).every((row) => row.attempts === 1));
    const waiting = await listQueue(database);

    expect(opened.getTime() - begun).toBeGreaterThanOrEqual(5_000);
    expect(tried).toBe(5);
    expect(postponed.filter((row) => row.postponed)).toHaveLength(6);
    for (const row of postponed.filter((each) => each.postponed)) {
      expect(row).toMatchObject({
        error: 'Waits: the last attempts of its webhook failed.',
        attempts: 0,
      });
      expect(row.dueAt).toBeGreaterThan(openUntil + 295_000);
      expect(row.dueAt).toBeLessThan(openUntil + 605_000);
    }
    expect(receiver.received.length).toBe(5 + 7);
    expect(waiting.map(({ postponed }) => postponed)).toEqual([false, false, false, false]);
    const closed = await until(async () => {
      const found = await findWebhook(database, form.projectId, webhook.id);
      return found?.openUntil === null ? found : undefined;
    });
    expect(closed.failuresInRow).toBe(0);
  });

  it('has been closed by a process that died: another one makes due what waits', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    const openUntil = new Date(Date.now() + 5_000);
    const webhook = await givenWebhook(database, form, {
      url: receiver.url,
      failingSince: new Date(Date.now() - 60_000),
      failuresInRow: 7,
      openUntil,
    });
    const schedule = [0, 600, 600];
    const dead = { capacity: () => ({ ...NO_CAPACITY, ...timesOf(schedule) }) };
    await givenSubmissions(database, form, answers(3), dead);
    const waiting = await listQueue(database);
    await database.execute(
      `update webhooks set open_until = now() - interval '1 second', failing_since = null, failures_in_row = 0`,
    );

    await using _ = startDelivery(database, { settings: { schedule } });
    await receiver.expectRequests(3);
    const closed = await until(
      async () => (await findWebhook(database, form.projectId, webhook.id))?.openUntil === null,
    );

    expect(waiting.map(({ postponed }) => postponed)).toEqual([true, true, true]);
    expect(closed).toBe(true);
  });

  it.each([
    ['works again', null, false],
    ['still fails', new Date(), true],
  ])(
    'postpones nothing late unless its receiver still fails: it %s',
    async (_state, failingSince, postponed) => {
      await using database = await openTestDatabase(engine);
      const form = await givenForm(database, deliveredByWebhook);
      const { id: webhookId } = await givenWebhook(database, form, { failingSince });
      await givenSubmissions(database, form, answers(2));

      const openUntil = new Date(Date.now() + 60_000);
      await postponeDeliveries(database, {
        webhookId,
        tenant: form.projectId,
        openUntil,
        totalSeconds: 1_800,
      });

      expect((await listQueue(database)).map((row) => row.postponed)).toEqual([postponed, postponed]);
    },
  );

  it('postpones nothing that nobody would make due, while a result says that the receiver has answered', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, deliveredByWebhook);
    const { id: webhookId } = await givenWebhook(database, form, { failingSince: new Date() });
    await givenSubmissions(database, form, answers(2));
    const postponement = {
      webhookId,
      tenant: form.projectId,
      openUntil: new Date(Date.now() + 60_000),
      totalSeconds: 1_800,
    };

    const postponing = await database.transaction(async (tx) => {
      await tx.execute('update webhooks set failing_since = null where id = $1', [webhookId]);
      const work = postponeDeliveries(database, postponement);
      // The embedded database runs one transaction at a time.
      if (engine === 'postgres') await Promise.race([work, until(() => isLocked(database))]);
      return { work };
    });
    await postponing.work;

    expect((await listQueue(database)).map((row) => row.postponed)).toEqual([false, false]);
  });

  it('holds back nothing beyond the end of its retry schedule', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, deliveredByWebhook);
    const openUntil = new Date(Date.now() + 5_000);
    await givenWebhook(database, form, { openUntil, failuresInRow: 7, failingSince: new Date() });
    const process = { capacity: () => ({ ...NO_CAPACITY, ...timesOf([0, 50]) }) };

    await givenSubmissions(database, form, answers(1), process);
    const [row] = await listQueue(database);

    expect(row?.postponed).toBe(true);
    expect(row?.dueAt).toBeGreaterThan(openUntil.getTime() + 15_000);
    expect(row?.dueAt).toBeLessThan(openUntil.getTime() + 60_000);
  });

  it('is in the log when it opens and when it closes, with the host, the error and since when', async () => {
    await using database = await openTestDatabase(engine);
    let works = false;
    await using receiver = await startReceiver(
      (_, response) => void response.writeHead(works ? 204 : 500).end(),
    );
    const form = await givenForm(database, deliveredByWebhook);
    const { id: webhook } = await givenWebhook(database, form, { url: `${receiver.url}/secret` });
    await givenSubmissions(database, form, answers(5));
    const lines: Record<string, unknown>[] = [];
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
    const lineWith = (text: string) => lines.find(({ msg }) => String(msg).startsWith(text));
    await using delivery = startDelivery(database, { log, settings: { schedule: [0, 600, 600] } });

    const opened = await until(() => lineWith('A webhook fails'));
    const failing = await listFailingWebhooks(database, { limit: 10 });
    works = true;
    await makeDue(database);
    delivery.notify();
    const closed = await until(() => lineWith('A webhook works again'));

    const { host } = new URL(receiver.url);
    const error = 'Answered 500.';
    const failingSince = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(opened).toMatchObject({ level: 40, webhook, host, error, failingSince });
    expect(failing.items).toMatchObject([{ id: webhook, host, error, disabledReason: null }]);
    expect(closed).toMatchObject({ level: 30, webhook, host, failingSince: opened.failingSince });
    expect(JSON.stringify([opened, closed])).not.toContain('secret');
    expect((await listFailingWebhooks(database, { limit: 10 })).items).toEqual([]);
  });

  it('tries the receiver with one delivery, and postpones the others again when that fails', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, deliveredByWebhook);
    const begun = Date.now();
    const webhook = await givenWebhook(database, form, {
      url: receiver.url,
      failingSince: new Date(begun - 60_000),
      failuresInRow: 7,
      openUntil: new Date(begun - 1),
    });
    const origin = { projectId: form.projectId, createdBy: 'public', createdFrom: 'network' };
    const strangers = await givenForm(database, { ...deliveredByWebhook, ...origin });
    // As many as are postponed in one transaction: between two, more may be tried.
    const each = 40;
    for (const one of [form, strangers]) await givenSubmissions(database, one, answers(each));
    await using _ = startDelivery(database, { settings: { schedule: [0, 600, 600], concurrency: 8 } });

    await until(async () => (await listQueue(database)).every((row) => row.dueAt > begun + 5_000));

    const found = await findWebhook(database, form.projectId, webhook.id);
    const opensMs = (found?.openUntil?.getTime() ?? 0) - begun;
    // A quarter of the minute that it has been failing.
    expect(opensMs).toBeGreaterThanOrEqual(15_000);
    expect(opensMs).toBeLessThan(30_000);
    // Four at once of what came to forms with a key, and of what came to those without.
    expect(receiver.received.length).toBeLessThanOrEqual(8);
    const rows = await listQueue(database);
    expect(rows.filter((row) => row.attempts === 0 && row.postponed).length).toBe(
      2 * each - receiver.received.length,
    );
    expect(rows.filter((row) => row.dueAt === found?.openUntil?.getTime())).toHaveLength(1);
  });

  it('gives up what was postponed for the time of the whole schedule, after an attempt', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, answers(1));
    await database.execute(
      `update delivery_queue set postponed = true, queued_at = now() - interval '1 hour' * 1.3`,
    );

    await using _ = startDelivery(database, { settings: { schedule: [0, 1_800, 1_800] } });
    const [logged] = await expectFinished(database, form, 1);

    expect(logged).toMatchObject({ delivery: { status: 'failed', attemptCount: 1, responseStatus: 500 } });
  });

  it('is closed by a new URL, and what waits follows when that works', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    const failing = { failuresInRow: 7, failingSince: new Date(), openUntil: new Date(Date.now() + 60_000) };
    const webhook = await givenWebhook(database, form, { url: receiver.url, ...failing });
    const waiting = { capacity: () => ({ ...NO_CAPACITY, ...timesOf([0, 600]) }) };
    await givenSubmissions(database, form, answers(2), waiting);

    const changed = await updateWebhook(database, form.projectId, webhook.id, { url: `${receiver.url}/new` });
    await using delivery = startDelivery(database, { settings: { schedule: [0, 600] } });
    await givenSubmissions(database, form, answers(1), delivery);
    await receiver.expectRequests(3);

    expect(changed?.failuresInRow).toBe(0);
    expect(changed?.openUntil?.getTime()).toBeLessThan(Date.now());
  });

  it('is closed by a replay, which is attempted at once, and what waits follows when that works', async () => {
    await using database = await openTestDatabase(engine);
    let works = false;
    await using receiver = await startReceiver(
      (_, response) => void response.writeHead(works ? 204 : 500).end(),
    );
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, answers(1));
    await using delivery = startDelivery(database, { settings: { schedule: [0] } });
    await expectFinished(database, form, 1);
    await database.execute(
      `update webhooks set failures_in_row = 9, open_until = now() + interval '5 minutes'`,
    );

    works = true;
    const waiting = { capacity: () => ({ ...NO_CAPACITY, ...timesOf([0, 600]) }) };
    await givenSubmissions(database, form, answers(2), waiting);
    const { count } = await replayDeliveries(database, { webhookId: webhook.id });
    const closed = await findWebhook(database, form.projectId, webhook.id);
    delivery.notify();
    await receiver.expectRequests(4);

    expect(count).toBe(1);
    expect(closed?.failuresInRow).toBe(0);
    expect(closed?.openUntil?.getTime()).toBeLessThan(Date.now());
  });
});

/** What waits for webhooks; a mail to the owner that one fails or works may wait beside it. */
async function listQueue(database: Database) {
  const rows = await database.select(
    `select attempt_count, postponed, error, due_at from delivery_queue where channel = 'webhook' order by id`,
  );
  return rows.map(({ attempt_count, error, postponed, due_at }) => ({
    attempts: Number(attempt_count),
    error,
    postponed: postponed === true,
    dueAt: timeOf(due_at).getTime(),
  }));
}

async function isLocked(database: Database): Promise<boolean> {
  const waiting = await database.select(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return waiting.length > 0;
}

/** As if the time had come. */
async function makeDue(database: Database): Promise<void> {
  await database.execute(`update webhooks set open_until = now() - interval '1 second'`);
  await database.execute(
    `update delivery_queue set due_at = now() - interval '1 second' where id = (select min(id) from delivery_queue)`,
  );
}
