import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tidyEmbedded } from '../../../src/delivery/sweeps/sweeps.ts';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { isWithin, rewriteErased, vacuumTables } from '../../../src/store/database/vacuum.ts';
import { givenEmbeddedDatabase } from '../../support/database.ts';
import { temporaryFolder } from '../../support/spawn.ts';

describe('the embedded database', () => {
  const folder = temporaryFolder();
  const place = join(folder.path, 'database');
  const logged: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => logged.push(JSON.parse(line)) });
  let database: Database;

  beforeAll(async () => {
    await givenEmbeddedDatabase(place);
    database = await openDatabase({ dataDir: place, log });
  });
  afterAll(async () => {
    await database.close();
    folder[Symbol.dispose]();
  });

  const sizeOf = async (table: string) =>
    Number((await database.select(`select pg_total_relation_size('${table}') as bytes`))[0]?.bytes);
  const limits = async (count: number) =>
    database.execute(
      `insert into rate_limits (key, hits, resets_at) select 'k' || n, 1, now() from generate_series(1, $1::int) n`,
      [count],
    );
  /** Which marked texts stand in any file of the data or of the write-ahead log. */
  const left = () => {
    const files = ['base', 'pg_wal'].flatMap((name) =>
      readdirSync(join(place, 'pglite', name), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    );
    return new Set(files.flatMap((file) => readFileSync(file, 'latin1').match(/erased-\d+-/g) ?? []));
  };
  const submissions = async (from: number, until: number) => {
    for (let n = from; n < until; n += 1) {
      await database.execute(
        `insert into submissions (id, project_id, form_id, version_id, answers, metadata, source, status, created_at)
         values ($1, 'prj_1', 'form_1', 'ver_1', $2, '{}', 'api', 'accepted', now())`,
        [`sub_${n}`, JSON.stringify({ text: `erased-${n}-${'x'.repeat(300)}` })],
      );
    }
  };

  it('uses the space of dead rows again', async () => {
    await limits(2_000);
    for (let round = 0; round < 5; round += 1) {
      for (let n = 1; n <= 2_000; n += 100) {
        await database.execute('update rate_limits set hits = hits + 1 where key = any($1)', [
          Array.from({ length: 100 }, (_, index) => `k${n + index}`),
        ]);
      }
      await vacuumTables(database, { isQuiet: false, log });
    }
    await database.execute(`delete from rate_limits where key like '%5'`);
    await vacuumTables(database, { isQuiet: false, log });
    const size = await sizeOf('rate_limits');

    await database.execute('vacuum full rate_limits');

    expect(size).toBeLessThanOrEqual(2 * (await sizeOf('rate_limits')));
    expect(logged).toContainEqual(
      expect.objectContaining({
        msg: 'Vacuumed a table.',
        table: 'rate_limits',
        pausedMs: expect.any(Number),
      }),
    );
  });

  it('leaves a table that takes long until its window, and says how long it took', async () => {
    await database.execute(
      'create table long as select repeat($1, 1000) as text from generate_series(1, 64000)',
      ['x'],
    );
    await database.execute('delete from long where ctid < $1', ['(4000,0)']);
    const vacuumed = () => logged.filter(({ table }) => table === 'long');

    await vacuumTables(database, { isQuiet: false, log });
    expect(vacuumed()).toEqual([]);
    await vacuumTables(database, { isQuiet: true, log });

    expect(vacuumed()).toEqual([expect.objectContaining({ pausedMs: expect.any(Number) })]);
    await database.execute('drop table long');
  });

  it('keeps nothing of what was erased once its tables are written anew, in its window alone', async () => {
    await submissions(0, 300);
    await database.execute('delete from submissions where id <> $1', ['sub_7']);
    const vacuumWindow = { from: 180, until: 240 };
    const options = { database, log, settings: { vacuumWindow } } as unknown as Parameters<
      typeof tidyEmbedded
    >[0];
    const at = (hour: number) => new Date(2026, 10, 24, hour, 30).getTime();

    await tidyEmbedded({ ...options, now: () => at(2) });
    expect(left().size).toBeGreaterThan(200);
    await tidyEmbedded({ ...options, now: () => at(3) });

    expect([...left()]).toEqual(['erased-7-']);
    logged.length = 0;
    expect(await rewriteErased(database, { log })).toEqual([]);
    await database.execute('delete from submissions');
    expect(await rewriteErased(database, { log })).toContain('submissions');
    expect([...left()]).toEqual([]);
    expect(logged.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['Wrote a table anew.', 'Gave the write-ahead log back.']),
    );
  });

  it('writes every table anew when it is told to', async () => {
    const written = await rewriteErased(database, { log, force: true });

    expect(written).toEqual(expect.arrayContaining(['rate_limits', 'forms', 'submissions', 'api_keys']));
  });
});

it.each([
  [{ from: 180, until: 240 }, 3, 0, true],
  [{ from: 180, until: 240 }, 3, 59, true],
  [{ from: 180, until: 240 }, 4, 0, false],
  [{ from: 180, until: 240 }, 2, 59, false],
  [{ from: 1380, until: 60 }, 23, 0, true],
  [{ from: 1380, until: 60 }, 0, 59, true],
  [{ from: 1380, until: 60 }, 1, 0, false],
])('the window %j has %i:%i: %s', (window, hour, minute, expected) => {
  expect(isWithin(window, new Date(2026, 10, 24, hour, minute).getTime())).toBe(expected);
});
