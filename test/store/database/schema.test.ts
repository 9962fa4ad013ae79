import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { getOrCreateProject } from '../../../src/store/projects/projects.ts';
import { createServerDatabase } from '../../support/database.ts';
import { runOn } from '../../support/postgres.ts';

describe('DATABASE_SCHEMA', () => {
  it('keeps all tables of one service apart from those of another, at every start', async () => {
    await using server = await createServerDatabase({ migrated: false });
    await runOn(server.databaseUrl, 'create schema cell_a');
    await runOn(server.databaseUrl, 'create schema cell_b');
    for (const schema of ['cell_a', 'cell_b', 'cell_a', 'cell_b']) {
      const database = await openIn(server.databaseUrl, schema);
      await getOrCreateProject(database, { id: `prj_${schema}`, name: 'one', createdAt: new Date(0) });
      await database.close();
    }

    const projects = await runOn(
      server.databaseUrl,
      'select id from cell_a.projects union all select id from cell_b.projects',
    );
    const tables = await runOn(
      server.databaseUrl,
      `select schemaname as name, count(*)::int as count from pg_tables where schemaname !~ '^(pg_|information)' group by 1 order by 1`,
    );
    expect(projects).toEqual([{ id: 'prj_cell_a' }, { id: 'prj_cell_b' }]);
    expect(tables.map(({ name }) => name)).toEqual(['cell_a', 'cell_b']);
    expect(tables[0]?.count).toBe(tables[1]?.count);
  });

  it('has to exist', async () => {
    await using server = await createServerDatabase({ migrated: false });

    await expect(openIn(server.databaseUrl, 'cell_c')).rejects.toThrow(
      /lacks the schema: create it, or set DATABASE_SCHEMA/,
    );
  });

  it('needs a server, and a name that is one', () => {
    expect(() => readConfig({ DATABASE_SCHEMA: 'cell_a' })).toThrow('DATABASE_SCHEMA');
    expect(() => readConfig({ DATABASE_SCHEMA: 'a; drop', DATABASE_URL: 'postgres://a/b' })).toThrow(
      'DATABASE_SCHEMA: expected the name of a schema',
    );
  });
});

function openIn(url: string, schema: string) {
  const env = {
    DATABASE_URL: `${url}?application_name=test`,
    DATABASE_SCHEMA: schema,
    SECRET_KEY: '00'.repeat(32),
  };
  const { databaseUrl = '' } = readConfig(env);
  return openDatabase({ databaseUrl, log: console });
}
