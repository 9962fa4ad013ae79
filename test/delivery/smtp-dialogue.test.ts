import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { standardTimes } from '../../src/delivery/mail/transport.ts';
import { oneEngine, openTestDatabase } from '../support/database.ts';
import { expectFinished, givenForm, givenSubmissions, startDelivery } from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';
import { until } from '../support/until.ts';

/** Much shorter than the others: the limit that a step runs into. The server greets after a tenth of a second. */
const SHORT_MS = 400;

describe.each(oneEngine('pglite'))('the dialogue with a mail server, on %s', (engine) => {
  it('waits for the answer to a message much longer than for others, and sends it once', async () => {
    await using database = await openTestDatabase(engine);
    const scan = () => sleep(2 * SHORT_MS, undefined);
    await using mailServer = await startMailServer(undefined, undefined, { scan });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}, {}]);
    await using _ = startDelivery(database, {
      settings: { smtpUrl: mailServer.url },
      smtpTimes: { ...standardTimes, server: SHORT_MS },
    });

    const logged = await expectFinished(database, form, 2);

    expect(logged.map(({ delivery }) => delivery)).toMatchObject([
      { status: 'delivered', attemptCount: 1 },
      { status: 'delivered', attemptCount: 1 },
    ]);
    expect(mailServer.mails).toHaveLength(2);
  });

  it('waits for the greeting', async () => {
    await using database = await openTestDatabase(engine);
    const greet = () => sleep(2 * SHORT_MS, undefined);
    await using mailServer = await startMailServer(undefined, undefined, { greet });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, {
      settings: { smtpUrl: mailServer.url },
      smtpTimes: { ...standardTimes, connecting: SHORT_MS, server: SHORT_MS },
    });

    const [logged] = await expectFinished(database, form, 1);

    expect(logged?.delivery).toMatchObject({ status: 'delivered', attemptCount: 1 });
  });

  it.each([
    ['greeting', { network: SHORT_MS }, '', 'did not answer within 0.4 s.'],
    ['greeting', {}, '?greetingTimeout=400', 'did not answer within 0.4 s.'],
    ['command', { server: SHORT_MS }, '', 'did not answer within 0.4 s.'],
    ['message', { message: SHORT_MS }, '', 'did not confirm the email within 0.4 s.'],
  ] as const)('ends where there is no answer to the %s (%o, %s)', async (silentAt, times, query, error) => {
    await using database = await openTestDatabase(engine);
    const held = Promise.withResolvers<undefined>();
    let isSilent = true;
    const answerTo = (step: string) => async () => (isSilent && step === silentAt ? held.promise : undefined);
    await using mailServer = await startMailServer(answerTo('command'), undefined, {
      greet: answerTo('greeting'),
      scan: answerTo('message'),
    });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, {
      settings: { smtpUrl: `${mailServer.url}${query}`, schedule: [0, 0.05, ...Array(20).fill(0.5)] },
      smtpTimes: { ...standardTimes, ...times },
    });
    await until(async () => {
      const [row] = await database.select('select attempt_count from delivery_queue');
      return Number(row?.attempt_count) > 0;
    });

    isSilent = false;
    held.resolve(undefined);
    const [logged] = await expectFinished(database, form, 1);

    expect(logged?.delivery.status).toBe('delivered');
    expect(logged?.attempts[0]).toMatchObject({ status: 'failed', error: `The mail server ${error}` });
  });

  it('is begun anew, once for an email, where a connection that was used before dies', async () => {
    await using database = await openTestDatabase(engine);
    let dies = 0;
    await using mailServer = await startMailServer(undefined, async () => {
      if (dies === 0) return undefined;
      dies -= 1;
      for (const socket of mailServer.sockets) socket.destroy();
      return 421;
    });
    const form = await givenForm(database);
    await using delivery = startDelivery(database, {
      settings: { smtpUrl: mailServer.url, schedule: [0, 3_600] },
    });
    const send = async (dying: number) => {
      dies = dying;
      const opened = mailServer.sockets.length;
      await givenSubmissions(database, form, [{}]);
      delivery.notify();
      return opened;
    };
    await send(0);
    await expectFinished(database, form, 1);

    const before = await send(1);
    const [, second] = await expectFinished(database, form, 2);
    const reopened = mailServer.sockets.length - before;
    const beforeThird = await send(2);
    const [third] = await until(async () => {
      const rows = await database.select('select step, attempt_count from delivery_queue where step = 1');
      return rows.length === 1 && rows;
    });

    expect(second?.delivery).toMatchObject({ status: 'delivered', attemptCount: 1 });
    expect(reopened).toBe(1);
    expect(third).toEqual({ step: 1, attempt_count: 1 });
    expect(mailServer.sockets.length - beforeThird).toBe(1);
  });

  it('opens one connection for an attempt where the server closes it before its greeting', async () => {
    await using database = await openTestDatabase(engine);
    const greet = async () => void mailServer.sockets.at(-1)?.destroy();
    await using mailServer = await startMailServer(undefined, undefined, { greet });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    const settings = { smtpUrl: mailServer.url, schedule: [0, 0.01] };
    await using _ = startDelivery(database, { settings });

    const [logged] = await expectFinished(database, form, 1);

    expect(logged?.delivery).toMatchObject({ status: 'failed', attemptCount: 2 });
    expect(mailServer.sockets).toHaveLength(2);
  });

  it('waits without a step of the schedule while the server takes no connection', async () => {
    await using database = await openTestDatabase(engine);
    let isFull = true;
    const greet = async () => (isFull ? '421 4.7.0 Too many connections' : undefined);
    await using mailServer = await startMailServer(undefined, undefined, { greet });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    const settings = { smtpUrl: mailServer.url, schedule: [0, 3_600] };
    await using _ = startDelivery(database, { settings });
    const waiting = await until(async () => {
      const [row] = await database.select('select step, attempt_count, error from delivery_queue');
      return row?.error && row;
    });

    isFull = false;
    await database.execute('update delivery_queue set due_at = now()');
    const [logged] = await expectFinished(database, form, 1);

    expect(waiting).toEqual({ step: 0, attempt_count: 0, error: 'The mail server answered 421.' });
    expect(logged?.delivery).toMatchObject({ status: 'delivered', attemptCount: 1 });
  });

  it('takes steps where the server takes no connection for longer than the schedule', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer(undefined, undefined, { greet: async () => 421 });
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    const settings = { smtpUrl: mailServer.url, schedule: [0, 0.01, 0.01] };
    await using _ = startDelivery(database, { settings, now: () => Date.now() + 60_000 });

    const [logged] = await expectFinished(database, form, 1);

    expect(logged?.delivery).toMatchObject({ status: 'failed', attemptCount: 3, responseStatus: 421 });
  });

  it.each([
    ['https://forms.example.org', '', 'forms.example.org'],
    ['https://forms.example.org', '?name=mx.example.net', 'mx.example.net'],
    ['http://localhost:8080', '', 'example.com'],
    ['http://192.0.2.1', '', 'example.com'],
  ])('names the service at %s%s as %s', async (baseUrl, query, name) => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, {
      settings: { smtpUrl: `${mailServer.url}${query}`, baseUrl, mailFrom: 'forms@example.com' },
    });

    await mailServer.expectMails(1);

    expect(mailServer.names).toEqual([name]);
  });

  it.each([
    ['maxConnections=2', 2, 2],
    ['pool=false', 5, 6],
  ])('has as many connections as %s says', async (query, most, opened) => {
    await using database = await openTestDatabase(engine);
    const held = Promise.withResolvers<undefined>();
    await using mailServer = await startMailServer(undefined, undefined, { scan: () => held.promise });
    const forms = await Promise.all(
      Array.from({ length: 6 }, (_, n) => givenForm(database, { ownerEmail: `owner${n}@example.com` })),
    );
    for (const form of forms) await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: `${mailServer.url}?${query}` } });
    await mailServer.expectMails(most);

    const [leased] = await database.select(
      'select count(*)::int as n from delivery_queue where leased_until > now()',
    );
    held.resolve(undefined);
    for (const form of forms) await expectFinished(database, form, 1);

    expect(leased?.n).toBe(most);
    expect(mailServer.sockets).toHaveLength(opened);
  });
});
