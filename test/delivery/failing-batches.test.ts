import { describe, expect, it } from 'vitest';
import { createFanOut } from '../../src/delivery/fan-out/fan-out.ts';
import { createSettler } from '../../src/delivery/worker/settler.ts';
import { newId } from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database/database.ts';
import { claimDue } from '../../src/store/deliveries/claim.ts';
import { findDelivery } from '../../src/store/deliveries/log.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenEvent,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';
import { until } from '../support/until.ts';

describe.each(engines)('a batch on %s', (engine) => {
  it('leaves out the event whose mails can’t be made, which its form shows as failed', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const [first, broken, last] = [
      await givenForm(database),
      await givenForm(database),
      await givenForm(database),
    ] as const;
    for (const form of [first, broken, last]) await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await database.execute("update events set body = '{' where form_id = $1", [broken.id]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await mailServer.expectMails(2);

    for (const form of [first, last]) {
      const [sent] = await expectFinished(database, form, 1);
      expect(sent?.delivery).toMatchObject({ status: 'delivered', kind: 'owner' });
    }
    const [parked, ...others] = await expectFinished(database, broken, 1);
    expect(parked).toMatchObject({
      delivery: {
        status: 'failed',
        channel: 'mail',
        kind: 'owner',
        attemptCount: 0,
        error: 'The service could not make the email.',
      },
      attempts: [],
    });
    expect(others).toEqual([]);
    expect(await database.select('select id from events where fanned_out_at is null')).toEqual([]);
  });

  it('of mails is bounded by its bytes', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    const long = 'x'.repeat(200_000);
    await givenSubmissions(database, form, Array(40).fill({ name: long, email: long }));
    let largest = 0;
    const measured: Database = {
      ...database,
      select: async (sql, ...rest) => {
        const rows = await database.select(sql, ...rest);
        largest = Math.max(largest, JSON.stringify(rows).length);
        return rows;
      },
      execute: (sql, params = [], ...rest) => {
        largest = Math.max(largest, JSON.stringify(params).length);
        return database.execute(sql, params, ...rest);
      },
    };
    await using delivery = startDelivery(database, { settings: { schedule: [3600] } });
    await delivery.stop(0);
    await database.execute('update events set fanned_out_at = null');
    await database.execute('delete from delivery_queue');
    const fanOut = createFanOut({ ...delivery.options, database: measured });

    while ((await fanOut()).more);

    const [row] = await database.select('select count(*)::int as mails from delivery_queue');
    expect(row).toEqual({ mails: 40 });
    expect(largest).toBeLessThan(2 * 1024 * 1024);
  });

  it('of results leaves out what the database refuses of one', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form);
    await givenSubmissions(database, form, [{}, {}, {}]);
    const capacity = {
      bytes: 1e9,
      perReceiver: 100,
      perTenant: 100,
      perTenantUnknown: 100,
      mails: 100,
      receivers: [],
      tenants: [],
    };
    const { claims } = await claimDue(database, { since: new Date(0), capacity, limit: 100, page: 100 });
    const options = startDelivery(database);
    await options.stop(0);
    const settle = createSettler({
      database,
      signal: new AbortController().signal,
      log: options.options.log,
      onChanges: () => undefined,
    });

    await Promise.all(
      claims.map(({ id, lease }, index) => {
        const responseBody = index === 1 ? 'a\u0000b' : 'thanks';
        const attempt = { id: newId('att', Date.now()), startedAt: new Date(), durationMs: 1, responseBody };
        return settle({ id, lease, status: 'delivered', attempt });
      }),
    );

    const stored = await Promise.all(claims.map(({ id }) => findDelivery(database, form.projectId, id)));
    expect(stored.map((each) => each?.delivery.status)).toEqual(['delivered', 'delivered', 'delivered']);
    expect(stored.map((each) => each?.attempts[0]?.responseBody)).toEqual(['thanks', null, 'thanks']);
  });

  it('ends a delivery by its schedule that the service itself can’t attempt', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { secret: 'not a sealed text' });
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database);

    const [logged] = await expectFinished(database, form, 1);

    expect(logged).toMatchObject({
      delivery: { status: 'failed', attemptCount: 0, error: 'The service could not try it.' },
      attempts: [],
    });
  });
});

it('makes mails at once after the clock stepped back by an hour', async () => {
  await using database = await openTestDatabase('pglite');
  await using mailServer = await startMailServer();
  const form = await givenForm(database, { pendingOwnerEmail: 'new@example.com' });
  let step = 0;
  const now = () => Date.now() - step;
  await using delivery = startDelivery(database, { now, settings: { smtpUrl: mailServer.url } });
  await givenSubmissions(database, form, [{}]);
  delivery.notify();
  await mailServer.expectMails(1);

  step = 3_600_000;
  const [id, at] = [newId('evt', now()), new Date(now())];
  await givenEvent(database, form, 'owner.change_requested', { address: 'new@example.com' });
  await database.execute('update events set id = $1, created_at = $2 where fanned_out_at is null', [id, at]);
  delivery.notify();

  // Otherwise after an hour.
  await until(() => mailServer.mails.length === 2);
});
