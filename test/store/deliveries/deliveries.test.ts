import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import type { Queries } from '../../../src/store/database/database.ts';
import { claimDue } from '../../../src/store/deliveries/claim.ts';
import { queueMails } from '../../../src/store/deliveries/enqueue-mails.ts';
import { findDelivery, listDeliveries } from '../../../src/store/deliveries/log.ts';
import { purgeDeliveries } from '../../../src/store/deliveries/remove.ts';
import { settleDeliveries } from '../../../src/store/deliveries/settle.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { endDelivery } from '../../support/delivery.ts';

describe.each(engines)('deliveries on %s', (engine) => {
  it('are listed newest first, page by page, with their attempts and without what a mail says', async () => {
    await using database = await openTestDatabase(engine);
    const ids = [await givenMail(database), await givenMail(database), await givenMail(database)];
    await attempt(database);
    await attempt(database);

    const first = await listDeliveries(database, { formId: 'form_one' }, { limit: 2 });
    const second = await listDeliveries(
      database,
      { formId: 'form_one' },
      { limit: 2, cursor: first.nextCursor ?? '' },
    );
    const one = await findDelivery(database, 'prj_one', ids[0] ?? '');

    const logged = [...first.items, ...second.items];
    expect(logged.map(({ delivery }) => delivery.id)).toEqual(ids.toReversed());
    expect(logged.map(({ attempts }) => attempts.map(({ number }) => number))).toEqual(Array(3).fill([1, 2]));
    expect(second).toMatchObject({ items: [one], nextCursor: null });
    expect(JSON.stringify([logged, one])).not.toContain('the words of the mail');
    expect(await findDelivery(database, 'prj_two', ids[0] ?? '')).toBeNull();
    expect((await listDeliveries(database, { formId: 'form_two' }, { limit: 2 })).items).toEqual([]);
  });

  it('are listed by their status', async () => {
    await using database = await openTestDatabase(engine);
    await givenMail(database);
    await attempt(database);

    const list = async (status: 'pending' | 'failed') =>
      (await listDeliveries(database, { formId: 'form_one', status }, { limit: 2 })).items;

    expect(await list('pending')).toHaveLength(1);
    expect(await list('failed')).toEqual([]);
  });

  it('are listed with the last 100 attempts of each, and end a page at 500', async () => {
    await using database = await openTestDatabase(engine);
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) ids.push(await givenMail(database));
    await database.execute(
      `insert into attempts select 'att_' || d.id || n, d.id, n, 'failed', null, null, repeat('x', 2048), 1, now()
       from delivery_queue d, generate_series(1, 150) n`,
    );
    await database.execute('update delivery_queue set attempt_count = 150');

    const first = await listDeliveries(database, { formId: 'form_one' }, { limit: 100 });
    const cursor = first.nextCursor ?? '';
    const second = await listDeliveries(database, { formId: 'form_one' }, { limit: 100, cursor });

    const listed = [...first.items, ...second.items];
    expect(listed.map(({ delivery }) => delivery.id)).toEqual(ids.toReversed());
    expect(first.items).toHaveLength(5);
    expect(second.nextCursor).toBeNull();
    const numbers = listed.map(({ attempts }) => attempts.map(({ number }) => number));
    expect(new Set(numbers.map((of) => of.length))).toEqual(new Set([100]));
    expect([numbers[0]?.[0], numbers[0]?.at(-1)]).toEqual([51, 150]);
  });

  it('are removed with their attempts once they are finished and old, in groups', async () => {
    await using database = await openTestDatabase(engine);
    const ids = [await givenMail(database), await givenMail(database), await givenMail(database)];
    const pending = await givenMail(database);
    await attempt(database);
    for (const id of ids) await endDelivery(database, id, 'failed');

    const removed = [
      await purgeDeliveries(database, 0, 2),
      await purgeDeliveries(database, made + 1, 2),
      await purgeDeliveries(database, made + 1, 2),
    ];

    expect(removed).toEqual([0, 2, 1]);
    expect(await database.select('select id from deliveries')).toEqual([]);
    expect(await database.select('select id from delivery_queue')).toEqual([{ id: pending }]);
    expect(await database.select('select delivery_id as id from attempts')).toEqual([{ id: pending }]);
  });
});

let made = 0;

async function givenMail(db: Queries): Promise<string> {
  // The order of ids is that of their milliseconds.
  made += 1;
  const id = newId('dlv', made);
  await queueMails(db, [
    {
      id,
      eventId: null,
      projectId: 'prj_one',
      formId: 'form_one',
      keyless: false,
      kind: 'owner',
      receiver: `${id}@example.com`,
      mail: { text: 'the words of the mail' },
      delaySeconds: 0,
    },
  ]);
  return id;
}

/** Attempts each due delivery in vain; the next attempt is due at once. */
async function attempt(db: Queries): Promise<void> {
  const since = new Date(0);
  const capacity = {
    bytes: 1e9,
    perReceiver: 100,
    perTenant: 100,
    perTenantUnknown: 100,
    mails: 100,
    receivers: [],
    tenants: [],
  };
  const { claims } = await claimDue(db, { since, capacity, limit: 100, page: 100 });
  await settleDeliveries(
    db,
    claims.map(({ id, lease }) => ({
      id,
      lease,
      status: 'pending',
      delayMs: 0,
      attempt: { id: newId('att', Date.now()), startedAt: new Date(), durationMs: 1 },
    })),
  );
}
