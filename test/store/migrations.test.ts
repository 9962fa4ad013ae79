import { openAsBlob } from 'node:fs';
import { expect, it } from 'vitest';
import type { Engine } from '../../src/store/database/engine.ts';
import { openPglite } from '../../src/store/database/pglite.ts';
import { openPostgres } from '../../src/store/database/postgres.ts';
import { createServerDatabase, type EngineName, engines } from '../support/database.ts';
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

async function openEngine(name: EngineName, cleanup: AsyncDisposableStack): Promise<Engine> {
  if (name === 'pglite') {
    const { dump } = await preparedPglite();
    return cleanup.adopt(await openPglite({ dump: await openAsBlob(dump) }), (engine) => engine.close());
  }
  const { databaseUrl } = cleanup.use(await createServerDatabase());
  const engine = await openPostgres({ databaseUrl, poolSize: 2, log: console });
  return cleanup.adopt(engine, () => engine.close());
}
