import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { createServerDatabase, engines, openTestDatabase } from '../support/database.ts';
import { openDatabaseProxy } from '../support/database-proxy.ts';
import {
  deliveredByWebhook,
  endLeases,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startReceiver } from '../support/receiver.ts';

it('finishes attempts under way while the database is away, and leaves them to be made again', async () => {
  await using server = await createServerDatabase();
  using proxy = await openDatabaseProxy(server.databaseUrl);
  const answers: ServerResponse[] = [];
  await using receiver = await startReceiver((_, response) => void answers.push(response));
  const database = await openDatabase({ databaseUrl: proxy.databaseUrl, log: pino({ level: 'silent' }) });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => database.close());
  const form = await givenForm(database, deliveredByWebhook);
  await givenWebhook(database, form, { url: receiver.url });
  const delivery = startDelivery(database);
  const [event] = await givenSubmissions(database, form, [{}]);
  delivery.notify();
  await receiver.expectRequests(1);

  proxy.cut();
  await expect(database.select('select 1')).rejects.toThrow('unavailable');
  let stopped = false;
  const stopping = delivery.stop(20_000).then(() => {
    stopped = true;
  });
  await expect(database.select('select 1')).rejects.toThrow('unavailable');
  expect(stopped).toBe(false);
  const [answer] = answers;
  if (answer === undefined) throw new Error('No request arrived');
  answer.writeHead(204).end();
  await once(answer, 'finish');
  await stopping;

  await proxy.mend();
  const left = await database.select(
    'select attempt_count, leased_until > now() as leased from delivery_queue',
  );
  expect(left).toEqual([{ attempt_count: 0, leased: true }]);
  await endLeases(database);
  await using _later = startDelivery(database);
  await receiver.expectRequests(2);
  answers[1]?.writeHead(204).end();
  const [repeated] = await expectFinished(database, form, 1);
  expect(repeated?.delivery.status).toBe('delivered');
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([event, event]);
});

it('releases what it can’t finish within the grace of a stop', async () => {
  await using database = await openTestDatabase('postgres');
  await using receiver = await startReceiver(() => undefined);
  const form = await givenForm(database, deliveredByWebhook);
  await givenWebhook(database, form, { url: receiver.url });
  await givenSubmissions(
    database,
    form,
    Array.from({ length: 10 }, () => ({})),
  );
  const delivery = startDelivery(database);
  await receiver.expectRequests(1);

  const stoppedAt = Date.now();
  await delivery.stop(100);

  expect(Date.now() - stoppedAt).toBeLessThan(5_000);
  const released = await database.select(
    'select id from delivery_queue where leased_until is null and attempt_count = 0',
  );
  expect(released).toHaveLength(10);
});

it.each(engines)('does not wait beyond its grace for a mail server that stalls, on %s', async (engine) => {
  await using database = await openTestDatabase(engine);
  const { promise: stalled, resolve: answer } = Promise.withResolvers<undefined>();
  const { promise: asked, resolve: noteAsked } = Promise.withResolvers<void>();
  await using mailServer = await startMailServer(() => {
    noteAsked();
    return stalled;
  });
  const form = await givenForm(database);
  await givenSubmissions(database, form, [{ name: 'Ada' }]);
  const settings = { smtpUrl: mailServer.url };
  const delivery = startDelivery(database, { settings });
  await asked;

  await delivery.stop(100);

  // A mail whose server has run into a time-out counts as an attempt.
  expect(await database.select('select attempt_count, leased_until, error from delivery_queue')).toEqual([
    { attempt_count: 0, leased_until: null, error: null },
  ]);
  answer(undefined);
  await using _later = startDelivery(database, { settings });
  const [mail] = await mailServer.expectMails(1);
  const [delivered] = await expectFinished(database, form, 1);
  expect(mail?.subject).toBe('Contact: Ada');
  expect(delivered?.delivery).toMatchObject({ status: 'delivered', attemptCount: 1 });
  expect(mailServer.mails).toHaveLength(1);
});

it('gives up storing results when the grace is over and the database is still away', async () => {
  await using server = await createServerDatabase();
  using proxy = await openDatabaseProxy(server.databaseUrl);
  await using receiver = await startReceiver(() => undefined);
  const database = await openDatabase({ databaseUrl: proxy.databaseUrl, log: pino({ level: 'silent' }) });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => database.close());
  const form = await givenForm(database, deliveredByWebhook);
  await givenWebhook(database, form, { url: receiver.url });
  await givenSubmissions(database, form, [{}]);
  let settlements = 0;
  const counted: Database = {
    ...database,
    execute: (sql, ...rest) => {
      if (sql.includes('insert into attempts')) settlements += 1;
      return database.execute(sql, ...rest);
    },
  };
  const delivery = startDelivery(counted);
  await receiver.expectRequests(1);

  proxy.cut();
  await delivery.stop(100);

  expect(settlements).toBe(1);
  await proxy.mend();
  const left = await database.select('select leased_until > now() as leased from delivery_queue');
  expect(left).toEqual([{ leased: true }]);
});
