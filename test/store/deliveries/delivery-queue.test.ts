import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import type { Queries, Transaction } from '../../../src/store/database/queries.ts';
import { claimByReceiver, claimDue } from '../../../src/store/deliveries/claim.ts';
import type { Claim } from '../../../src/store/deliveries/claimed.ts';
import { queueMails } from '../../../src/store/deliveries/enqueue-mails.ts';
import type { FreeCapacity } from '../../../src/store/deliveries/fairness.ts';
import { findDelivery, listDeliveries } from '../../../src/store/deliveries/log.ts';
import { replayDelivery } from '../../../src/store/deliveries/replay.ts';
import { settleDeliveries } from '../../../src/store/deliveries/settle.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { endDelivery, givenForm, givenSubmissions, givenWebhook } from '../../support/delivery.ts';

const capacity = {
  bytes: 1e9,
  perReceiver: 100,
  perTenant: 100,
  perTenantUnknown: 100,
  mails: 100,
  receivers: [],
  tenants: [],
};
const start = { since: new Date(0), capacity, limit: 100 };

const ways: [string, (queries: Queries, given?: Partial<FreeCapacity>) => Promise<{ claims: Claim[] }>][] = [
  [
    'by their time',
    (queries, given) => claimDue(queries, { ...start, capacity: { ...capacity, ...given }, page: 100 }),
  ],
  [
    'by their receivers',
    (queries, given) =>
      claimByReceiver(queries, {
        ...start,
        capacity: { ...capacity, ...given },
        after: null,
        mailTenants: [],
      }),
  ],
];

describe.each(engines)('due deliveries on %s', (engine) => {
  it.each(ways)('are claimed %s, by one until its lease ends, and keep their time', async (_way, claim) => {
    await using database = await openTestDatabase(engine);
    const id = await givenDelivery(database);
    const due = await stateOf(database, id);

    const first = await claim(database);
    const again = await claim(database);
    const claimed = await stateOf(database, id);
    await endLease(database, id);
    const second = await claim(database);
    await settleDeliveries(database, [{ id, lease: first.claims[0]?.lease ?? '', status: 'failed' }]);
    const late = await stateOf(database, id);
    await settleDeliveries(database, [{ id, lease: second.claims[0]?.lease ?? '', status: 'delivered' }]);

    expect(first.claims.map((each) => each.id)).toEqual([id]);
    expect(again.claims).toEqual([]);
    expect(claimed).toEqual(due);
    expect(second.claims.map((each) => each.id)).toEqual([id]);
    expect(late.status).toBe('pending');
    expect((await stateOf(database, id)).status).toBe('delivered');
  });

  it.each(ways)('are claimed %s without an entry in any index', async (_way, claim) => {
    await using database = await openTestDatabase(engine);
    await Promise.all(Array.from({ length: 40 }, () => givenDelivery(database)));

    const written = await database.transaction(async (tx) => {
      const before = await updatesOf(tx);
      const { claims } = await claim(tx);
      const after = await updatesOf(tx);
      return {
        claims: claims.length,
        updated: after.all - before.all,
        besideIndexes: after.besideIndexes - before.besideIndexes,
      };
    });

    expect(written).toEqual({ claims: 40, updated: 40, besideIndexes: 40 });
  });

  it('are settled without a flush, which the commits of submissions would wait for', async () => {
    await using database = await openTestDatabase(engine);
    const id = await givenDelivery(database);
    const { claims } = await claimDue(database, { ...start, page: 100 });
    await database.execute(`create table commits (flushes text)`);
    await database.execute(`create function note_commit() returns trigger language plpgsql as
      $$ begin insert into commits values (current_setting('synchronous_commit')); return null; end $$`);
    await database.execute(`create constraint trigger at_commit after insert on deliveries
      deferrable initially deferred for each row execute function note_commit()`);

    await settleDeliveries(database, [{ id, lease: claims[0]?.lease ?? '', status: 'delivered' }]);

    expect(await database.select('select flushes from commits')).toEqual([{ flushes: 'off' }]);
    expect(await database.select('show synchronous_commit')).toEqual([{ synchronous_commit: 'on' }]);
  });

  it('are settled by their ids, not by reading all of the queue', async () => {
    await using database = await openTestDatabase(engine);
    // Too few for autovacuum, after which a table of one page would rightly be read as a whole.
    const ids = await Promise.all(Array.from({ length: 10 }, () => givenDelivery(database)));
    const { claims } = await claimDue(database, { ...start, page: 100 });
    const results = claims.slice(0, 3).map(({ id, lease }) => ({ id, lease }));

    const scans = await database.transaction(async (tx) => {
      const before = await scansOf(tx);
      await settleDeliveries(
        tx,
        results.map((result) => ({ ...result, status: 'delivered' })),
      );
      return (await scansOf(tx)) - before;
    });

    expect(claims).toHaveLength(ids.length);
    expect(scans).toBe(0);
  });

  it.each(ways)('are claimed %s, no more than there is room for their bodies', async (_way, claim) => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    await givenWebhook(database, form);
    await givenSubmissions(
      database,
      form,
      Array.from({ length: 8 }, () => ({ name: 'x'.repeat(10_000) })),
    );

    const counts: number[] = [];
    for (const bytes of [35_000, 1, 1e9]) counts.push((await claim(database, { bytes })).claims.length);

    // At least one, however large it is; those that did not fit are free for the next claim.
    expect(counts).toEqual([3, 1, 4]);
  });

  it.each([
    { what: 'has its part of the capacity', free: 0, unknown: 50, named: 40, claimed: 0 },
    { what: 'has little capacity left', free: 3, unknown: 50, named: 40, claimed: 3 },
    { what: 'has capacity for receivers that are named', free: 50, unknown: 0, named: 5, claimed: 5 },
  ])(
    'are locked by their receivers only as far as they are claimed, of a tenant that $what',
    async (tenant) => {
      await using database = await openTestDatabase(engine);
      const ids = await Promise.all(Array.from({ length: 40 }, () => givenDelivery(database)));
      const of = { tenant: 'prj_one', free: tenant.free, unknown: tenant.unknown, mails: 0 };
      const receivers = ids
        .slice(0, tenant.named)
        .map((id) => ({ tenant: 'prj_one', receiver: `${id}@example.com`, free: 10 }));

      const counts = await database.transaction(async (tx) => {
        const { claims } = await claimByReceiver(tx, {
          ...start,
          capacity: { ...capacity, receivers, tenants: [of] },
          after: null,
          mailTenants: [],
        });
        const [row] = await tx.select(
          `select count(*) from delivery_queue where xmax <> 0 and leased_until is null`,
        );
        return { claims: claims.length, onlyLocked: Number(row?.count) };
      });

      expect(counts).toEqual({ claims: tenant.claimed, onlyLocked: 0 });
    },
  );

  it.each(ways)(
    'are claimed %s, no more mails than there may be, first those of projects with few',
    async (_way, claim) => {
      await using database = await openTestDatabase(engine);
      for (let n = 0; n < 4; n += 1) await givenDelivery(database, 'prj_busy');
      const other = await givenDelivery(database, 'prj_other');
      const tenants = [{ tenant: 'prj_busy', free: 100, unknown: 100, mails: 2 }];

      const first = await claim(database, { mails: 2, tenants });
      const none = await claim(database, { mails: 0, tenants });

      expect(first.claims.map(({ id }) => id)).toContain(other);
      expect([first.claims.length, none.claims.length]).toEqual([2, 0]);
    },
  );

  it('are claimed by their receivers beside the projects whose mails the page has', async () => {
    await using database = await openTestDatabase(engine);
    for (let n = 0; n < 3; n += 1) await givenDelivery(database, 'prj_busy');
    const other = await givenDelivery(database, 'prj_other');

    const page = await claimDue(database, { ...start, capacity: { ...capacity, mails: 0 }, page: 3 });
    const step = await claimByReceiver(database, { ...start, after: null, mailTenants: page.mailTenants });

    expect(page.mailTenants).toEqual(['prj_busy']);
    expect(step.claims.map(({ id }) => id)).toEqual([other]);
  });

  it.each(ways)('are claimed %s in the very moment that they become due in', async (_way, claim) => {
    await using database = await openTestDatabase(engine);

    // A transaction has one `now()`, somewhere between two of the milliseconds that columns keep.
    for (let moment = 0; moment < 12; moment += 1) {
      await database.transaction(async (tx) => {
        const id = await givenDelivery(tx);
        const inserted = await claim(tx);
        await settleDeliveries(tx, [
          { id, lease: inserted.claims[0]?.lease ?? '', status: 'pending', delayMs: 0 },
        ]);
        const putBack = await claim(tx);
        await settleDeliveries(tx, [{ id, lease: putBack.claims[0]?.lease ?? '', status: 'failed' }]);

        expect(inserted.claims.map((each) => each.id)).toEqual([id]);
        expect(putBack.claims.map((each) => each.id)).toEqual([id]);
      });
    }
  });

  it.each(ways)('are claimed %s in the very moment that they are replayed in', async (_way, claim) => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    const { id: webhookId } = await givenWebhook(database, form);
    await givenSubmissions(database, form, [{}]);
    const { items } = await listDeliveries(database, { webhookId }, { limit: 1 });
    const id = items[0]?.delivery.id ?? '';
    await endDelivery(database, id, 'failed');

    for (let moment = 0; moment < 12; moment += 1) {
      await database.transaction(async (tx) => {
        await replayDelivery(tx, { projectId: form.projectId, id });
        const { claims } = await claim(tx);
        await settleDeliveries(tx, [{ id, lease: claims[0]?.lease ?? '', status: 'failed' }]);

        expect(claims.map((each) => each.id)).toEqual([id]);
      });
    }
  });
});

async function givenDelivery(queries: Queries, projectId = 'prj_one'): Promise<string> {
  const id = newId('dlv', Date.now());
  await queueMails(queries, [
    {
      id,
      eventId: null,
      projectId,
      formId: 'form_one',
      keyless: false,
      kind: 'owner',
      receiver: `${id}@example.com`,
      mail: {},
      delaySeconds: 0,
    },
  ]);
  return id;
}

/** The session's updates of deliveries, and how many of them needed no index entry. */
async function updatesOf(tx: Transaction): Promise<{ all: number; besideIndexes: number }> {
  const [row] = await tx.select(
    `select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relname = 'delivery_queue'`,
  );
  return { all: Number(row?.n_tup_upd), besideIndexes: Number(row?.n_tup_hot_upd) };
}

/** How often all of the queue was read. */
async function scansOf(tx: Transaction): Promise<number> {
  const [row] = await tx.select(
    `select seq_scan from pg_stat_xact_user_tables where relname = 'delivery_queue'`,
  );
  return Number(row?.seq_scan);
}

async function stateOf(database: TestDatabase, id: string) {
  const logged = await findDelivery(database, 'prj_one', id);
  return { status: logged?.delivery.status, dueAt: logged?.delivery.dueAt };
}

async function endLease(database: TestDatabase, id: string): Promise<void> {
  await database.execute(
    `update delivery_queue set leased_until = now() - interval '1 second' where id = $1`,
    [id],
  );
}
