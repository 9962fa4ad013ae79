import { setTimeout as sleep } from 'node:timers/promises';
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
    const before = counted.queries();

    await sleep(3_000);

    expect(counted.queries() - before).toBeLessThanOrEqual(4);
    expect(counted.transactions()).toBe(0);
  });

  it('finds what another process wrote without a notification, within a second or two', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database);
    await givenWebhook(database, form, { url: receiver.url });
    await using _delivery = startDelivery(database);
    await sleep(1_500);

    const writtenAt = Date.now();
    await givenSubmissions(database, form, [{}]);

    const [first] = await receiver.expectRequests(1);
    expect((first?.at ?? 0) - writtenAt).toBeLessThan(3_000);
  });

  it('finds events and deliveries that are committed later than their times say', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database);
    await givenWebhook(database, form, { url: receiver.url });
    await using _delivery = startDelivery(database);
    await sleep(2_500);

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
  let transactions = 0;
  let lastAt = 0;
  const count = () => {
    queries += 1;
    lastAt = performance.now();
  };
  const counted: Database = {
    ...database,
    select: (...args) => {
      count();
      return database.select(...args);
    },
    execute: (...args) => {
      count();
      return database.execute(...args);
    },
    transaction: (work) => {
      transactions += 1;
      return database.transaction(work);
    },
  };
  return {
    database: counted,
    queries: () => queries,
    transactions: () => transactions,
    /** Whether the work of the start is done. */
    settled: () => performance.now() - lastAt > 500,
  };
}
