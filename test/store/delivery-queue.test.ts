import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { Queries, Transaction } from '../../src/store/database/queries.ts';
import { insertDeliveries } from '../../src/store/delivery-inserts.ts';
import { type Claim, claimDue, claimInTurn } from '../../src/store/delivery-queue.ts';
import { settleDeliveries } from '../../src/store/delivery-results.ts';
import { engines, openTestDatabase, type TestDatabase } from '../support/database.ts';

const start = { since: new Date(0), busy: [], perReceiver: 100, limit: 100 };

const ways: [string, (queries: Queries) => Promise<{ claims: Claim[] }>][] = [
  ['by their time', (queries) => claimDue(queries, { ...start, page: 100 })],
  ['by their receivers', (queries) => claimInTurn(queries, { ...start, after: '' })],
];

describe.each(engines)('due deliveries on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it.each(ways)('are claimed %s, by one until its lease ends, and keep their time', async (_way, claim) => {
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
    const ids = await Promise.all(Array.from({ length: 40 }, () => givenDelivery(database)));

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
    await database.query('delete from deliveries where id = any($1::text[])', [ids]);
  });
});

async function givenDelivery(database: TestDatabase): Promise<string> {
  const id = newId('dlv', Date.now());
  await insertDeliveries(database, [
    {
      id,
      eventId: null,
      projectId: 'prj_one',
      formId: 'form_one',
      submissionId: null,
      kind: 'owner',
      receiver: `${id}@example.com`,
      mail: {},
      delaySeconds: -1,
    },
  ]);
  return id;
}

/** The session's updates of deliveries, and how many of them needed no index entry. */
async function updatesOf(tx: Transaction): Promise<{ all: number; besideIndexes: number }> {
  const [row] = await tx.query(
    `select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relname = 'deliveries'`,
  );
  return { all: Number(row?.n_tup_upd), besideIndexes: Number(row?.n_tup_hot_upd) };
}

async function stateOf(database: TestDatabase, id: string) {
  const [row] = await database.query('select status, due_at from deliveries where id = $1', [id]);
  return { status: row?.status, dueAt: row?.due_at };
}

async function endLease(database: TestDatabase, id: string): Promise<void> {
  await database.query('update deliveries set leased_until = now() where id = $1', [id]);
}
