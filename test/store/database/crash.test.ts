import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { createServerDatabase, givenEmbeddedDatabase } from '../../support/database.ts';
import { program } from '../../support/programs.ts';
import { until } from '../../support/until.ts';
import { countSubmissions } from '../given.ts';

describe('a writing process that is killed', () => {
  it('loses no acknowledged row of the embedded database', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'forms-crash-'));
    try {
      await givenEmbeddedDatabase(dataDir);
      const acknowledged = await killAfter(dataDir, 300);

      const database = await openDatabase({ dataDir, log: console });

      await expectAllStored(database, acknowledged);
      await database.close();
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  it('leaves no half database when it was killed while it made the embedded one', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'forms-crash-'));
    try {
      const child = startWriting(dataDir);
      const closed = once(child, 'close');
      await until(() => readdirSync(dataDir).some((name) => existsSync(join(dataDir, name, 'PG_VERSION'))));
      child.kill('SIGKILL');
      await closed;

      const database = await openDatabase({ dataDir, log: console });

      expect(await database.schemaDifference()).toBe('');
      expect(readdirSync(dataDir).filter((name) => name.startsWith('pglite'))).toEqual(['pglite']);
      await database.close();
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  it('loses no acknowledged row of the server', async () => {
    await using server = await createServerDatabase();
    const acknowledged = await killAfter(server.databaseUrl, 300);

    const database = await openDatabase({ databaseUrl: server.databaseUrl, log: console });

    await expectAllStored(database, acknowledged);
    await database.close();
  });
});

/** Kills the process in the midst of its writing, and returns the ids it had been promised. */
async function killAfter(place: string, rows: number): Promise<string[]> {
  const child = startWriting(place);
  const closed = once(child, 'close');
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    output += chunk;
    if (output.split('\n').length > rows) child.kill('SIGKILL');
  }
  expect(await closed).toEqual([null, 'SIGKILL']);
  return output.split('\n').slice(0, -1);
}

/** Starts a process that opens the database and writes until it is killed. */
function startWriting(place: string) {
  return spawn(process.execPath, [...program('writing'), place], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function expectAllStored(database: Database, acknowledged: string[]): Promise<void> {
  const rows = await database.select('select id from submissions');
  const stored = new Set(rows.map(({ id }) => String(id)));
  expect(acknowledged.length).toBeGreaterThanOrEqual(300);
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);

  const { accepted } = await countSubmissions(database, 'form_one');
  const [events] = await database.select('select count(*)::int as count from events');
  expect({ accepted, events: events?.count }).toEqual({ accepted: stored.size, events: stored.size });
}
