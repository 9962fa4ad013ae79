import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSlices } from '../../../src/store/database/slices.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';

describe.each(engines)('slices of long work on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('take turns, one at a time, also after one that failed', async () => {
    const order: string[] = [];
    let running = 0;
    const work = async (name: string) => {
      const slice = createSlices(database, 1_000);
      for (let n = 0; n < 3; n++) {
        const done = slice(async (tx) => {
          running += 1;
          order.push(`${name}${running}`);
          await tx.select('select 1');
          running -= 1;
          if (n === 1) throw new Error('It fails');
        });
        await done.catch(() => undefined);
      }
    };

    await Promise.all([work('a'), work('b')]);

    expect(order).toEqual(['a1', 'b1', 'a1', 'b1', 'a1', 'b1']);
  });

  it('rest three times as long as they took while others use the service', async () => {
    database.slots.within({ reader: 'strangers', readsMuch: false }, () => {});
    const slice = createSlices(database, 1_000);
    const timed = () =>
      slice(async () => {
        const begunAt = performance.now();
        await sleep(20);
        return { begunAt, endedAt: performance.now() };
      });

    const first = await timed();
    const second = await timed();

    // Timers count whole milliseconds, and may be one early. After one that was held up there are 200 ms.
    const took = first.endedAt - first.begunAt;
    expect(second.begunAt - first.endedAt).toBeGreaterThan(Math.min(took * 2.5, 195));
  });

  it('take turns with what else takes long of their project while others use the service', async () => {
    database.slots.within({ reader: 'strangers', readsMuch: false }, () => {});
    const order: string[] = [];
    const timed = async (name: string) => {
      order.push(`${name} begins`);
      await sleep(20);
      order.push(`${name} ends`);
    };

    await database.slots.within({ reader: 'prj_a', readsMuch: true }, async () => {
      const slice = createSlices(database, 1_000);
      await Promise.all([slice(() => timed('slice')), database.read(() => timed('read'))]);
    });

    expect(order).toEqual(['slice begins', 'slice ends', 'read begins', 'read ends']);
  });

  it('go through fewer rows where rows take long, and through more where they do not', async () => {
    const slice = createSlices(database, 1_000);
    const rowsOf = (msPerRow: number) =>
      slice(async (_tx, rows) => {
        const end = performance.now() + rows * msPerRow;
        while (performance.now() < end);
        return rows;
      });

    const slow = [await rowsOf(1), await rowsOf(1), await rowsOf(1)];
    for (let n = 0; n < 20; n++) await rowsOf(0);

    expect(slow).toEqual([100, 50, 50]);
    expect(await rowsOf(0)).toBeGreaterThan(50);
  });
});
