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

    // Once the work of the start is done, four are three seconds apart.
    await until(() => counted.fourTookMs() > 2_250);
    expect(counted.transactions()).toBe(0);
  });

  it('finds what another process wrote without a notification, when it looks next', async () => {
    await using database = await openTestDatabase(engine);
    const counted = counting(database);
    await using receiver = await startReceiver();
    const form = await givenForm(database);
    await givenWebhook(database, form, { url: receiver.url });
    await using _delivery = startDelivery(counted.database);
    await until(() => counted.polls() >= 2);

    await givenSubmissions(database, form, [{}]);
    const before = counted.polls();

    await receiver.expectRequests(1);
    // One may have been under way at the commit.
    expect(counted.claims().find((polls) => polls >= before)).toBeLessThanOrEqual(before + 1);
  });

  it('finds events and deliveries that are committed later than their times say', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, { pendingOwnerEmail: 'new@example.com' });
    await givenWebhook(database, form, { url: receiver.url });
    const counted = counting(database);
    await using _delivery = startDelivery(counted.database);
    await until(() => counted.polls() >= 3);

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
  const begunAt: number[] = [];
  let polls = 0;
  const claims: number[] = [];
  let transactions = 0;
  const count = (sql: string) => {
    begunAt.push(performance.now());
    if (sql.startsWith('select now() as at,')) polls += 1;
    if (sql.includes('set leased_until = now() +')) claims.push(polls);
  };
  const counted: Database = {
    ...database,
    select(sql, ...rest) {
      count(sql);
      return database.select(sql, ...rest);
    },
    execute(sql, ...rest) {
      count(sql);
      return database.execute(sql, ...rest);
    },
    transaction: (work) => {
      transactions += 1;
      return database.transaction(work);
    },
  };
  return {
    database: counted,
    /** How long before the latest query the third before it was made; 0 if there was none. */
    fourTookMs: () => (begunAt.at(-1) ?? 0) - (begunAt.at(-4) ?? begunAt.at(-1) ?? 0),
    /** How often it was asked whether there is work. */
    polls: () => polls,
    /** How often until each claim. */
    claims: () => claims,
    transactions: () => transactions,
  };
}
