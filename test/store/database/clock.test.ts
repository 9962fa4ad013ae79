import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { instantOfId, newId } from '../../../src/domain/ids.ts';
import { DAY_MS } from '../../../src/domain/limits/limits.ts';
import { followDatabase, machineClock } from '../../../src/store/database/clock.ts';
import type { Database } from '../../../src/store/database/database.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { startService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const retained = { settings: { retentionDays: 30 } };

describe.each(engines)('on %s, a machine whose clock is off by', (engine) => {
  it.each([31, -31])('%i days stores what it takes by the time of the database', async (days) => {
    await using database = await openTestDatabase(engine);
    await using service = await startService({ database, now: clockOff(days) });
    const form = await service.givenPublishedForm();

    const { json } = await service.post(`/api/forms/${form.id}/submissions`, { answers });

    const { submission } = (await service.get(`/v1/submissions/${json.submission_id}`)).json;
    expect(Math.abs(Date.parse(submission.created_at) - Date.now())).toBeLessThan(DAY_MS);
    for (const id of [form.id, json.submission_id]) {
      expect(Math.abs(instantOfId(id) - Date.now())).toBeLessThan(DAY_MS);
    }
  });

  it.each([31, -31])('%i days removes what is too old by the time of the database', async (days) => {
    await using database = await openTestDatabase(engine);
    await using writer = await startService({ database, env: { DELIVERY_WORKERS: '0' } });
    const form = await writer.givenPublishedForm(retained);
    const post = async () =>
      String((await writer.post(`/api/forms/${form.id}/submissions`, { answers })).json.submission_id);
    const [fresh, old] = [await post(), await post()];
    await makeOlder(database, old, 31);

    await using _ = await startService({
      database,
      now: clockOff(days),
      env: { BOOTSTRAP_API_KEY: writer.key },
    });

    await until(async () => !(await idsOf(database)).includes(idDaysAgo(old, 31)));
    expect(await idsOf(database)).toEqual([fresh]);
  });

  it.each([31, -31])(
    '%i days writes rows that others keep for as long as they are to be kept',
    async (days) => {
      await using database = await openTestDatabase(engine);
      await using writer = await startService({
        database,
        now: clockOff(days),
        env: { DELIVERY_WORKERS: '0' },
      });
      const form = await writer.givenPublishedForm(retained);
      const post = async () =>
        String((await writer.post(`/api/forms/${form.id}/submissions`, { answers })).json.submission_id);
      const [fresh, old] = [await post(), await post()];
      await makeOlder(database, old, 31);

      await using _ = await startService({ database, env: { BOOTSTRAP_API_KEY: writer.key } });

      await until(async () => !(await idsOf(database)).includes(idDaysAgo(old, 31)));
      expect(await idsOf(database)).toEqual([fresh]);
    },
  );
});

it('a clock is corrected, but not for less than the measurement takes', async () => {
  let database = 1_000_000;
  const clock = machineClock(
    () => database + 5_000,
    () => database - 900_000,
  );
  const slow = {
    now: async () => {
      database += 40;
      return new Date(database - 30);
    },
  };

  await clock.correct(slow);

  expect(Math.abs(clock() - database)).toBeLessThanOrEqual(20);
  const first = clock() - database;
  await clock.correct(slow);
  expect(clock() - database).toBe(first);
});

it.each([31 * DAY_MS, -31 * DAY_MS])(
  'a clock that is set by %i ms goes on as it did, and the database is asked at once, once',
  async (ms) => {
    let off = 0;
    let asked = 0;
    const clock = machineClock(() => Date.now() + off);
    const database = {
      now: async () => {
        asked += 1;
        return new Date();
      },
    };
    using _ = await followDatabase(clock, { database, log: pino({ level: 'silent' }) });

    off = ms;

    for (let count = 3; count > 0; count--) expect(Math.abs(clock() - Date.now())).toBeLessThan(DAY_MS);
    expect(asked).toBe(2);
  },
);

it('a clock follows the database when the machine goes on after a pause', async () => {
  let pausedMs = 0;
  const real = () => Date.now() + pausedMs;
  const clock = machineClock(real);
  const database = { now: async () => new Date(real()) };
  using _ = await followDatabase(clock, { database, log: pino({ level: 'silent' }) });

  pausedMs = 31 * DAY_MS;

  await until(() => Math.abs(clock() - real()) < DAY_MS);
});

function clockOff(days: number) {
  return machineClock(() => Date.now() + days * DAY_MS);
}

/** The same id as of so many days before. */
function idDaysAgo(id: string, days: number): string {
  const time = newId('sub', instantOfId(id) - days * DAY_MS).slice(0, 14);
  return `${time}${id.slice(14)}`;
}

async function makeOlder(database: Database, id: string, days: number): Promise<void> {
  await database.execute('update submissions set id = $2 where id = $1', [id, idDaysAgo(id, days)]);
}

async function idsOf(database: Database): Promise<string[]> {
  return (await database.select('select id from submissions')).map(({ id }) => String(id));
}

const answers = { email: 'ada@example.com' };
