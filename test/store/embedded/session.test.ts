import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSlices } from '../../../src/store/database/slices.ts';
import { openTestDatabase, type TestDatabase } from '../../support/database.ts';

describe('the embedded database in a thread of its own', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase('pglite');
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('lets everything else run during a statement', async () => {
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    });

    await database.select(LONG);
    clearInterval(counting);

    expect(turns).toBeGreaterThan(10);
  });

  it('has the statements of the ORM, too, before it has answered the last one', async () => {
    let answered = 0;
    const reads = [1, 2, 3, 4, 5].map(async () => {
      await database.read((em) => em.execute('select 1'));
      answered += 1;
    });
    await nextTurn();

    // Nothing can be sent meanwhile.
    busyFor(300);
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();

    expect(answered).toBe(reads.length);
    await Promise.all(reads);
  });

  it.each([
    ['a list of a project', () => database.select('select 1')],
    ['a slice of long work', () => createSlices(database, 1_000)(async () => undefined)],
  ])('lets other statements go before %s', async (_what, work) => {
    const firstOf = async () => {
      const order: string[] = [];
      const before = database.execute(SHORT);
      const long = database.slots.within({ reader: 'project', readsMuch: true }, async () => {
        await work();
        order.push('long');
      });
      await nextTurn();
      const other = database.execute('select 1').then(() => order.push('other'));
      await Promise.all([before, long, other]);
      return order[0];
    };

    // Whoever came first would be first each time. On a busy machine it has waited for long enough now and then.
    await expect.poll(firstOf).toBe('other');
  });
});

/** Takes some milliseconds. */
const SHORT = 'select count(*) from generate_series(1, 50000)';

/** Takes a second or more. */
const LONG = 'select count(*) from generate_series(1, 3000000)';

function busyFor(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
