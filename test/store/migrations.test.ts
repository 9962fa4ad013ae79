import { openAsBlob } from 'node:fs';
import { Migration } from '@mikro-orm/migrations';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../../src/store/database/engine.ts';
import { openPglite } from '../../src/store/database/pglite.ts';
import { openPostgres } from '../../src/store/database/postgres.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { createServerDatabase, type EngineName, engines } from '../support/database.ts';
import { runOn } from '../support/postgres.ts';
import { preparedPglite } from '../support/prepared.ts';

it.each(engines)('puts the retention time of current versions on older forms on %s', async (name) => {
  await using cleanup = new AsyncDisposableStack();
  const engine = await openEngine(name, cleanup);
  await engine.query('alter table forms drop column retention_days', []);
  await engine.query("delete from migrations where name = '2026-11-21-forms-with-retention'", []);
  await engine.query(
    `insert into form_versions (id, form_id, number, definition, checksum, created_at) values
       ('ver_1', 'form_1', 1, '{"settings":{"retentionDays":30}}', '1', now()),
       ('ver_2', 'form_2', 1, '{"settings":{"retentionDays":60}}', '1', now()),
       ('ver_3', 'form_2', 2, '{"settings":{}}', '2', now())`,
    [],
  );
  await engine.query(
    `insert into forms (id, project_id, name, slug, status, created_by, current_version_id, activation_hash,
       activation_expires_at, created_at, updated_at)
     select id, 'prj_1', id, id, 'published', 'key_1', version, 'hash', now(), now(), now()
     from (values ('form_1', 'ver_1'), ('form_2', 'ver_3'), ('form_3', null)) as f(id, version)`,
    [],
  );

  await engine.migrate();

  expect(await engine.query('select id, retention_days from forms order by id', [])).toEqual([
    { id: 'form_1', retention_days: 30 },
    { id: 'form_2', retention_days: null },
    { id: 'form_3', retention_days: null },
  ]);
  expect(await engine.schemaDifference()).toBe('');
});

describe('a migration that takes long', () => {
  it('outlasts the time limits of statements, also those that the database sets, and says so in the log', async () => {
    await using server = await createServerDatabase();
    const name = new URL(server.databaseUrl).pathname.slice(1);
    await runOn(server.adminUrl, `alter database ${name} set statement_timeout = 300`);
    await using cleanup = new AsyncDisposableStack();
    const { log, lines } = collectLog();
    const engine = await openPostgres({
      databaseUrl: server.databaseUrl,
      poolSize: 1,
      log,
      limits: { statementMs: 300, answerMs: 400 },
      migrations: [...migrations, { name: 'slow', class: Slow }],
    });
    cleanup.defer(() => engine.close());

    await engine.migrate();

    expect(lines).toEqual([
      { level: 30, migration: 'slow', seconds: 1, msg: 'Still migrating the database.' },
      { level: 30, migration: 'slow', seconds: 1, msg: 'Migrated the database.' },
    ]);
    expect(await engine.query("select name from migrations where name = 'slow'", [])).toHaveLength(1);
    await expect(engine.query('select pg_sleep(1)', [])).rejects.toMatchObject({ code: '57014' });
  });

  it('is waited for by another process, however long it takes', async () => {
    await using server = await createServerDatabase();
    const { log, lines } = collectLog();
    await using cleanup = new AsyncDisposableStack();
    const [one, two] = await Promise.all(
      [1, 2].map(async () => {
        const engine = await openPostgres({
          databaseUrl: server.databaseUrl,
          poolSize: 1,
          log,
          limits: { statementMs: 300, answerMs: 400 },
          migrations: [...migrations, { name: 'slow', class: Slow }],
        });
        cleanup.defer(() => engine.close());
        return engine;
      }),
    );

    await Promise.all([one?.migrate(), two?.migrate()]);

    expect(lines).toContainEqual({
      level: 30,
      seconds: 1,
      msg: 'Waiting for another process that is migrating the database.',
    });
    expect(await two?.query("select name from migrations where name = 'slow'", [])).toHaveLength(1);
  });

  it('is not spoken of if it takes no time', async () => {
    await using server = await createServerDatabase({ migrated: false });
    await using cleanup = new AsyncDisposableStack();
    const { log, lines } = collectLog();
    const engine = await openPostgres({
      databaseUrl: server.databaseUrl,
      poolSize: 1,
      log,
      migrations: [{ name: 'nothing', class: Nothing }],
    });
    cleanup.defer(() => engine.close());

    await engine.migrate();

    expect(lines).toEqual([]);
  });
});

class Slow extends Migration {
  override up(): void {
    this.addSql('select pg_sleep(1.2)');
  }
}

class Nothing extends Migration {
  override up(): void {
    this.addSql('select 1');
  }
}

/** A log, and what it was told. */
function collectLog() {
  const lines: unknown[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  return { log: pino({ base: null, timestamp: false }, { write }), lines };
}

async function openEngine(name: EngineName, cleanup: AsyncDisposableStack): Promise<Engine> {
  if (name === 'pglite') {
    const { dump } = await preparedPglite();
    return cleanup.adopt(await openPglite({ dump: await openAsBlob(dump), log: console }), (engine) =>
      engine.close(),
    );
  }
  const { databaseUrl } = cleanup.use(await createServerDatabase());
  const engine = await openPostgres({ databaseUrl, poolSize: 2, log: console });
  return cleanup.adopt(engine, () => engine.close());
}
