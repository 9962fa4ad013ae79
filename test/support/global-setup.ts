import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../../src/store/database/database.ts';
import { openPglite } from '../../src/store/database/pglite.ts';
import { inDatabase } from './database.ts';
import { runOn, startPostgres } from './postgres.ts';

/**
 * Prepares one migrated database of each engine for the whole run: a template on a real server, and a
 * dump of an embedded one. Test files begin with copies.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Tests kill processes, never the machine.
  const server = await startPostgres({ fsync: 'off' });
  const folder = mkdtempSync(join(tmpdir(), 'forms-test-'));
  const template = `forms_template_${process.pid}`;
  const stop = async () => {
    await runOn(server.url, `drop database if exists ${template} with (force)`);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };

  try {
    await makeTemplate(server.url, template);
    project.provide('postgres', { url: server.url, template });
    project.provide('pgliteDump', await makeDump(folder));
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function makeTemplate(url: string, template: string): Promise<void> {
  await runOn(url, `create database ${template}`);
  const database = await openDatabase({ databaseUrl: inDatabase(url, template), log: console });
  await database.close();
}

async function makeDump(folder: string): Promise<string> {
  const engine = await openPglite({});
  await engine.migrate();
  const dump = await engine.dump();
  await engine.close();
  const file = join(folder, 'pglite.tar');
  writeFileSync(file, Buffer.from(await dump.arrayBuffer()));
  return file;
}

declare module 'vitest' {
  interface ProvidedContext {
    postgres: { url: string; template: string };
    pgliteDump: string;
  }
}
