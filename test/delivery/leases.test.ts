import { afterEach, describe, expect, it, vi } from 'vitest';
import { LONGEST_MAIL_MS } from '../../src/delivery/mail/sender.ts';
import { MAIL_CONNECTIONS } from '../../src/delivery/mail/transport.ts';
import { LONGEST_CALL_MS } from '../../src/delivery/webhook/sender.ts';
import { LONGEST_WAIT_MS } from '../../src/delivery/worker/capacity.ts';
import { LONGEST_SETTLING_MS } from '../../src/delivery/worker/settler.ts';
import { LEASE_SECONDS } from '../../src/store/deliveries/delivery-queue-table.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import { expectFinished, givenForm, givenSubmissions, startDelivery } from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';
import { until } from '../support/until.ts';

describe('a lease', () => {
  it.each([
    ['webhook', LONGEST_CALL_MS],
    ['mail', LONGEST_MAIL_MS],
  ] as const)('lasts until the result of a %s is stored, even at the worst', (channel, attemptMs) => {
    expect(LONGEST_WAIT_MS[channel] + attemptMs + LONGEST_SETTLING_MS).toBeLessThan(LEASE_SECONDS * 1_000);
  });
});

describe.each(engines)('a slow mail server on %s', (engine) => {
  afterEach(() => vi.restoreAllMocks());

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

  it('is cut off before the lease ends, and tried again', async () => {
    await using database = await openTestDatabase(engine);
    const held = Promise.withResolvers<undefined>();
    const deadline = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementationOnce(() => deadline.signal);
    await using mailServer = await startMailServer(async () => {
      if (!deadline.signal.aborted) deadline.abort();
      else held.resolve(undefined);
      return held.promise;
    });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [logged] = await expectFinished(database, form, 1);

    expect(timeout).toHaveBeenCalledWith(LONGEST_MAIL_MS);
    expect(logged?.attempts).toMatchObject([
      { status: 'failed', error: 'Not sent within 25 s.' },
      { status: 'delivered' },
    ]);
  });
});
