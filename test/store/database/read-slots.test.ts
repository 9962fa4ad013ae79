import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { newSessionId } from '../../../src/domain/ids.ts';
import type { Database } from '../../../src/store/database/database.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/** Runs work as one request of a reader. */
const as = <T>({ slots }: Database, reader: string, work: () => Promise<T>, readsMuch = false): Promise<T> =>
  slots.within({ reader, readsMuch }, work);

/** Reads of the current request that take some milliseconds each, in the order in which they began. */
async function readsAtOnce(database: Pick<Database, 'read'>, count: number): Promise<TimedRead[]> {
  const reads: TimedRead[] = [];
  const read = () =>
    database.read(async () => {
      const begunAt = performance.now();
      await sleep(20);
      reads.push({ begunAt, endedAt: performance.now() });
    });
  await Promise.all(Array.from({ length: count }, read));
  return reads.toSorted((one, other) => one.begunAt - other.begunAt);
}

type TimedRead = { begunAt: number; endedAt: number };

describe.each(engines)('reads on %s', (engine) => {
  it('of strangers leave room for writes and for others', async () => {
    await using database = await openTestDatabase(engine);
    const answered = Promise.withResolvers<void>();
    let started = 0;
    const strangers = Array.from({ length: 100 }, () =>
      as(database, 'strangers', () =>
        database.read(() => {
          started += 1;
          return answered.promise;
        }),
      ),
    );

    await database.execute('delete from rate_limits');
    await as(database, 'prj_a', () => database.select('select count(*) from submissions'));

    expect(started).toBeGreaterThan(0);
    // Half of those of all.
    expect(started).toBeLessThanOrEqual(engine === 'pglite' ? 14 : 4);
    answered.resolve();
    await Promise.all(strangers);
  });

  it('of several readers take turns', async () => {
    await using database = await openTestDatabase(engine);
    const begun: string[] = [];
    const read = (reader: string) =>
      as(database, reader, () =>
        database.read(async () => {
          begun.push(reader);
          await yieldToEventLoop();
        }),
      );

    const strangers = Array.from({ length: 100 }, () => read('strangers'));
    const busy = Array.from({ length: 100 }, () => read('prj_b'));
    const few = Array.from({ length: 10 }, () => read('prj_a'));
    await Promise.all([...strangers, ...busy, ...few]);

    expect(begun.length).toBe(210);
    expect(begun.lastIndexOf('prj_a')).toBeLessThan(80);
  });

  it('of a project that read much come one by one, with rests, where others use the service too', async () => {
    await using database = await openTestDatabase(engine);
    await as(database, 'strangers', () => database.select('select 1'));

    const reads = await as(database, 'prj_a', () => readsAtOnce(database, 4), true);

    for (const [index, { begunAt }] of reads.entries()) {
      const before = reads[index - 1];
      if (before === undefined) continue;
      // Timers count whole milliseconds, and may be one early. On a busy machine a read takes so long that no rest is
      // three times as long: it has 200 ms.
      const took = before.endedAt - before.begunAt;
      expect(begunAt - before.endedAt).toBeGreaterThan(Math.min(took * 2.5, 195));
    }
  });

  it('of a project take turns for as long as others send requests, though it sends none itself', async () => {
    await using database = await openTestDatabase(engine);

    const reads = await as(
      database,
      'prj_a',
      async () => {
        await as(database, 'strangers', () => database.select('select 1'));
        const secondAfter = performance.now() + 1_000;
        await until(() => performance.now() > secondAfter);
        await as(database, 'strangers', () => database.select('select 1'));
        return readsAtOnce(database, 2);
      },
      true,
    );

    expect(reads[1]?.begunAt).toBeGreaterThan(reads[0]?.endedAt ?? Number.NaN);
  });

  it('may read within a read', async () => {
    await using database = await openTestDatabase(engine);
    const nested = () => database.read(async () => database.select('select 1 as one'));

    const all = await Promise.all(Array.from({ length: 20 }, () => as(database, 'strangers', nested)));

    expect(all).toEqual(Array(20).fill([{ one: 1 }]));
  });
});

describe('strangers whose reads hang', () => {
  let service: TestService;
  afterEach(() => service[Symbol.asyncDispose]());

  it('keep nobody from submitting, nor projects and /ready from an answer', async () => {
    service = await startService({ engine: 'postgres', env: { RATE_LIMIT: 'off' } });
    const form = await service.givenPublishedForm();
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const lock = service.database.transaction(async (tx) => {
      await tx.execute('lock table sessions in access exclusive mode');
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const hanging = Array.from({ length: 30 }, () => fetch(`${service.url}/s/${newSessionId()}`));
    const waiting = `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    await until(async () => Number((await service.database.select(waiting))[0]?.n) > 0);

    const ready = await fetch(`${service.url}/ready`);
    const submitted = await service.post(`/api/forms/${form.id}/submissions`, {
      answers: { email: 'ada@example.com' },
    });
    const listed = await service.get('/v1/forms');
    const { held, most } = service.database.connections() ?? {};
    release.resolve();

    expect(held?.strangers).toBeGreaterThan(0);
    expect(held?.strangers).toBeLessThanOrEqual((most ?? 0) / 2);
    expect([ready.status, submitted.status, listed.status]).toEqual([200, 201, 200]);
    await lock;
    expect(new Set((await Promise.all(hanging)).map(({ status }) => status))).toEqual(new Set([404]));
  });
});

describe('lists of one project', () => {
  it('run together where nobody else uses the service', async () => {
    await using database = await openTestDatabase('postgres');
    await as(database, 'strangers', () => database.select('select 1'));
    await as(database, 'prj_a', () => database.select('select 1'));
    const sharedUntil = performance.now() + 1_000;
    await until(() => performance.now() > sharedUntil);

    const [first, second] = await as(database, 'prj_a', () => readsAtOnce(database, 2), true);

    expect(second?.begunAt).toBeLessThan(first?.endedAt ?? 0);
  });
});

describe('reads of one project', () => {
  let service: TestService;
  afterEach(() => service[Symbol.asyncDispose]());

  it('hold half of the connections, for 3 seconds, and then say what to ask for', async () => {
    service = await startService({ engine: 'postgres', env: { RATE_LIMIT: 'off' } });
    const form = await service.givenPublishedForm();
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const lock = service.database.transaction(async (tx) => {
      await tx.execute('lock table submissions in access exclusive mode');
      locked.resolve();
      await release.promise;
    });
    await locked.promise;

    // Waits for the same lock, with the time of all that is no list.
    let isUsualOver = false;
    const usual = service.database
      .select('select 1 from submissions limit 1')
      .catch(() => undefined)
      .finally(() => {
        isUsualOver = true;
      });
    const lists = Array.from({ length: 8 }, () => service.get(`/v1/forms/${form.id}/submissions`));
    const exported = service.get(`/v1/forms/${form.id}/submissions/export?format=ndjson`);
    await until(() => (service.database.connections()?.held.projects ?? 0) > 1);
    const { held, most } = service.database.connections() ?? {};
    const refused = await Promise.race(lists);
    const wasFirst = !isUsualOver;
    const others = await service.get('/v1/forms');
    const exports = await exported;
    release.resolve();
    await lock;
    await Promise.all([...lists, usual]);

    expect(wasFirst).toBe(true);
    expect(held?.projects).toBeLessThanOrEqual((most ?? 0) / 2);
    expect(refused.status).toBe(503);
    expect(refused.json.error).toMatchObject({
      message: expect.stringMatching(
        /took longer than 3 s .* ask for a shorter time \(created_after, created_before\)/,
      ),
      next_call: 'corrected',
    });
    expect(exports.json.error.message).toContain('ask for a list by created_after and created_before');
    expect(others.status).toBe(200);
    // What is no list has the usual time, whichever connection it gets.
    const limits = await Promise.all(
      Array.from({ length: most ?? 0 }, () => service.database.select('show statement_timeout')),
    );
    expect(new Set(limits.flat().map((row) => row.statement_timeout))).toEqual(new Set(['10s']));
  });
});
