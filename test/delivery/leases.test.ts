import { describe, expect, it } from 'vitest';
import { MAIL_CONNECTIONS } from '../../src/delivery/mail/transport.ts';
import { LONGEST_CALL_MS } from '../../src/delivery/webhook/sender.ts';
import { LONGEST_WAIT_MS } from '../../src/delivery/worker/capacity.ts';
import { LONGEST_SETTLING_MS } from '../../src/delivery/worker/settler.ts';
import { RENEW_EVERY_MS } from '../../src/delivery/worker/worker.ts';
import { LEASE_SECONDS } from '../../src/store/deliveries/queue-table.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

describe('a lease', () => {
  it('lasts until the result of a webhook is stored, even at the worst', () => {
    expect(LONGEST_WAIT_MS.webhook + LONGEST_CALL_MS + LONGEST_SETTLING_MS).toBeLessThan(
      LEASE_SECONDS * 1_000,
    );
  });

  it('lasts until the result of an email is stored, though one renewal failed before', () => {
    expect(LONGEST_WAIT_MS.mail + 2 * RENEW_EVERY_MS + LONGEST_SETTLING_MS).toBeLessThan(
      LEASE_SECONDS * 1_000,
    );
  });
});

describe.each(engines)('a slow mail server on %s', (engine) => {
  it('is handed no more mails than it has connections, and each of them once', async () => {
    await using database = await openTestDatabase(engine);
    const held = Promise.withResolvers<undefined>();
    let asked = 0;
    await using mailServer = await startMailServer(async () => {
      asked += 1;
      return held.promise;
    });
    const forms = await Promise.all(
      Array.from({ length: 48 }, (_, n) => givenForm(database, { ownerEmail: `owner${n}@example.com` })),
    );
    for (const form of forms) await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });
    await until(() => asked === MAIL_CONNECTIONS);

    const [leased] = await database.select(
      `select count(*)::int as now, (select count(*)::int from delivery_queue) as waiting
       from delivery_queue where leased_until > now()`,
    );
    held.resolve(undefined);
    const mails = await mailServer.expectMails(48);

    expect(leased).toEqual({ now: MAIL_CONNECTIONS, waiting: 48 });
    for (const form of forms) await expectFinished(database, form, 1);
    expect(new Set(mails.flatMap(({ recipients }) => recipients)).size).toBe(48);
    expect(mails).toHaveLength(48);
  });

  it('keeps its emails from other processes for as long as it takes, by leases that are renewed', async () => {
    await using database = await openTestDatabase(engine);
    const held = Promise.withResolvers<undefined>();
    await using mailServer = await startMailServer(undefined, undefined, { scan: () => held.promise });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}, {}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url }, renewEveryMs: 20 });
    await mailServer.expectMails(2);
    const leases = () => database.select('select leased_until from delivery_queue order by id');

    const first = await leases();
    const later = await until(async () => {
      const now = await leases();
      return now.every((row, n) => String(row.leased_until) > String(first[n]?.leased_until)) && now;
    });
    held.resolve(undefined);
    const logged = await expectFinished(database, form, 2);

    expect(later).toHaveLength(2);
    expect(logged.map(({ delivery }) => delivery.attemptCount)).toEqual([1, 1]);
    expect(mailServer.mails).toHaveLength(2);
  });

  it('keeps no webhook waiting, whatever the number of emails that it has', async () => {
    await using database = await openTestDatabase(engine);
    const held = Promise.withResolvers<undefined>();
    await using mailServer = await startMailServer(undefined, undefined, { scan: () => held.promise });
    await using receiver = await startReceiver();
    const forms = await Promise.all(
      Array.from({ length: MAIL_CONNECTIONS }, (_, n) =>
        givenForm(database, { ownerEmail: `owner${n}@example.com` }),
      ),
    );
    for (const form of forms) await givenSubmissions(database, form, [{}]);
    const settings = { smtpUrl: mailServer.url, concurrency: 1 };
    await using delivery = startDelivery(database, { settings });
    await mailServer.expectMails(MAIL_CONNECTIONS);

    const called = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, called, { url: receiver.url });
    await givenSubmissions(database, called, [{}, {}, {}]);
    delivery.notify();
    await expectFinished(database, called, 3);

    held.resolve(undefined);
    expect(receiver.received).toHaveLength(3);
    for (const form of forms) await expectFinished(database, form, 1);
    expect(mailServer.mails).toHaveLength(MAIL_CONNECTIONS);
  });
});
