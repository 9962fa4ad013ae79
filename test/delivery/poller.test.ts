import { describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database/database.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

describe.each(engines)('the poller on %s', (engine) => {
  it('costs an idle process one query a second and no transaction', async () => {
    await using database = await openTestDatabase(engine);
    const counted = counting(database);
    await using _delivery = startDelivery(counted.database);
    await until(() => counted.queries() > 0 && counted.settled());
    const [begun, before] = [performance.now(), counted.queries()];

    await until(() => counted.queries() >= before + 4);

    // Four, three seconds apart, and however many more on a machine that is late.
    expect(performance.now() - begun).toBeGreaterThan(2_250);
    expect(counted.transactions()).toBe(0);
  });

  it('finds what another process wrote without a notification, when it looks next', async () => {
    await using database = await openTestDatabase(engine);
    const counted = counting(database);
    let pollsUntilArrival = Number.POSITIVE_INFINITY;
    await using receiver = await startReceiver((_, response) => {
      pollsUntilArrival = counted.polls();
      response.writeHead(204).end();
    });
    const form = await givenForm(database);
    await givenWebhook(database, form, { url: receiver.url });
    await using _delivery = startDelivery(counted.database);
    await until(() => counted.polls() === 2);

    await givenSubmissions(database, form, [{}]);
    const before = counted.polls();

    await receiver.expectRequests(1);
    // One that finds it, and one that comes while it is sent.
    expect(pollsUntilArrival - before).toBeLessThanOrEqual(2);
  });

  it('finds events and deliveries that are committed later than their times say', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, { pendingOwnerEmail: 'new@example.com' });
    await givenWebhook(database, form, { url: receiver.url });
    const counted = counting(database);
    await using _delivery = startDelivery(counted.database);
    await until(() => counted.polls() === 3);

    await database.execute(
      `insert into events (id, project_id, form_id, type, body, created_at)
       values ($1, $2, $3, 'owner.change_requested', '{"address":"new@example.com"}', now())`,
      [newId('evt', Date.now() - 3_000), form.projectId, form.id],
    );
    await givenSubmissions(database, form, [{}]);
    await database.execute("update delivery_queue set due_at = now() - interval '3 seconds'");

    await receiver.expectRequests(1);
    await expectFinished(database, form, 3);
  });
});

/** Counts what is asked of a database. */
function counting(database: Database) {
  let queries = 0;
  let polls = 0;
  let transactions = 0;
  let underWay = 0;
  let lastAt = 0;
  const count = async <T>(sql: string, work: () => Promise<T>): Promise<T> => {
    queries += 1;
    if (sql.startsWith('select now() as at,')) polls += 1;
    underWay += 1;
    try {
      return await work();
    } finally {
      underWay -= 1;
      lastAt = performance.now();
    }
  };
  const counted: Database = {
    ...database,
    select: (sql, ...rest) => count(sql, () => database.select(sql, ...rest)),
    execute: (sql, ...rest) => count(sql, () => database.execute(sql, ...rest)),
    transaction: (work) => {
      transactions += 1;
      return database.transaction(work);
    },
  };
  return {
    database: counted,
    queries: () => queries,
    /** How often it was asked whether there is work. */
    polls: () => polls,
    transactions: () => transactions,
    /** Whether the work of the start is done. */
    settled: () => underWay === 0 && performance.now() - lastAt > 500,
  };
}
