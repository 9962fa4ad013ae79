import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import { engines } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { spawnService } from '../support/spawn.ts';

describe.each(engines)('the tables on %s', (engine) => {
  it('are changed by admin migrate alone with MIGRATE=off', async () => {
    await using installation = await givenInstallation(engine);
    const env = { ...installation.env, MIGRATE: 'off' };
    await change(env, "drop table revoked_keys; delete from migrations where name like '%revoked-keys'");

    await using refused = spawnService(env);
    const { code, errors } = await refused.ended;
    const migrated = await admin(['migrate'], env);
    const again = await admin(['migrate'], env);
    await using service = spawnService(env);
    await service.started();

    expect({ code, errors }).toEqual({
      code: 1,
      errors:
        'The database lacks the migration 2026-11-22-revoked-keys, and MIGRATE=off: ' +
        'run npm run cli -- admin migrate with this version first.\n',
    });
    expect(migrated).toMatchObject({
      code: 0,
      errors: 'Running 1 migration.\nDone: 2026-11-22-revoked-keys\n',
    });
    expect(again.errors).toBe('Nothing to do: the tables are up to date.\n');
    expect((await admin(['migrate'], env)).errors).toMatch(/^Nothing to do/);
  });

  it('of a newer version are left alone, by the service and by commands', async () => {
    await using installation = await givenInstallation(engine);
    const { env } = installation;
    await change(env, "insert into migrations (name) values ('2099-01-01-more'), ('2099-01-02-yet-more')");

    await using service = spawnService(env);
    const { code, errors } = await service.ended;
    const migrated = await admin(['migrate'], env);

    const line =
      'The database is of a newer version: this one does not know its migrations 2099-01-01-more, ' +
      '2099-01-02-yet-more. Start the version that the database was last used with, or a newer one.\n';
    expect({ code, errors }).toEqual({ code: 1, errors: line });
    expect(migrated).toEqual({ code: 1, output: '', errors: line });
    expect(await admin(['keys', 'list'], env)).toMatchObject({
      code: 1,
      errors: expect.stringContaining(line),
    });
  });
});

/** Runs statements on the database of an installation, one after the other. */
async function change(env: Record<string, string>, statements: string): Promise<void> {
  const { DATABASE_URL: databaseUrl, DATA_DIR: dataDir = '' } = env;
  const place = databaseUrl === undefined ? { dataDir: join(dataDir, 'database') } : { databaseUrl };
  const database = await openDatabase({ ...place, migrate: 'never', log: console });
  for (const statement of statements.split(';')) await database.execute(statement);
  await database.close();
}
