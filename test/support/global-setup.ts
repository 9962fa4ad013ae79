import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { chromiumPath, noBrowser } from './chromium.ts';
import { inDatabase, runOn, startPostgres } from './postgres.ts';
import type { Preparations, PreparedPglite, PreparedPostgres } from './prepared.ts';
import { endProcesses } from './run-processes.ts';

/**
 * Prepares for the whole run, once a test asks for it (see `prepared.ts`), one migrated database of each engine: a
 * template on a real server, and a dump of an embedded one; and the package for others, installed.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const undo = new AsyncDisposableStack();
  useTemporaryFolder(undo);
  project.provide(
    'preparations',
    await serve(undo, {
      postgres: () => preparePostgres(undo),
      pglite: preparePglite,
      package: async () => (await import('../packages/prepare-package.ts')).preparePackage(),
    }),
  );
  return async () => {
    await undo.disposeAsync();
    if (noBrowser) nameLeftOut(project);
  };
}

/** Lets whatever the run makes in the system's temporary folder go with it, also when a process is killed. */
function useTemporaryFolder(undo: AsyncDisposableStack): void {
  const folder = mkdtempSync(join(tmpdir(), 'forms-test-'));
  undo.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  // PostgreSQL runs as another user, and has its folder in here.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  process.env.TEST_BUNDLE = join(folder, 'bundle');
  // What one process has compiled, the others of the run read.
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled');
  undo.defer(endProcesses);
}

/** Comes after the summary of the run. */
function nameLeftOut({ vitest }: TestProject): void {
  const modules = vitest.state.getTestModules();
  const browserTests = modules.filter(({ moduleId }) => moduleId.endsWith('.browser.test.ts'));
  const count = browserTests.flatMap(({ children }) => [...children.allTests('skipped')]).length;
  if (count === 0) return;
  const remedy = 'install the Debian package chromium, or set CHROMIUM_PATH';
  vitest.logger.log(`\n  ${count} browser tests were LEFT OUT: there is no ${chromiumPath} (${remedy}).\n`);
}

/** Answers `GET /<name>` with what that preparation gave, which is made once. Returns the URL. */
async function serve(undo: AsyncDisposableStack, preparations: Preparations): Promise<string> {
  const made = new Map<string, Promise<object>>();
  const isPreparation = (name: string): name is keyof Preparations => Object.hasOwn(preparations, name);
  const server = createServer((request, response) => {
    const name = request.url?.slice(1) ?? '';
    if (!isPreparation(name)) return void response.writeHead(404).end();
    const making = made.get(name) ?? preparations[name]();
    made.set(name, making);
    making.then(
      (prepared) => response.end(JSON.stringify(prepared)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('A TCP server has a port');
  return `http://127.0.0.1:${address.port}`;
}

async function preparePostgres(undo: AsyncDisposableStack): Promise<PreparedPostgres> {
  // Tests kill processes, never the machine.
  const server = await startPostgres({ fsync: 'off' });
  undo.defer(() => server.stop());
  const { url } = server;
  const prefix = `forms_test_${process.pid}_`;
  // Only a server that stays when the run is over still has them after it.
  if (process.env.TEST_DATABASE_URL !== undefined) undo.defer(() => dropDatabases(url, prefix));
  const template = `${prefix}template`;
  await runOn(url, `create database ${template}`);
  const { openDatabase } = await import('../../src/store/database/database.ts');
  const database = await openDatabase({ databaseUrl: inDatabase(url, template), log: console });
  await database.close();
  return { url, template, prefix };
}

async function dropDatabases(url: string, prefix: string): Promise<void> {
  const databases = await runOn(
    url,
    `select datname from pg_database where starts_with(datname, '${prefix}')`,
  );
  for (const { datname } of databases)
    await runOn(url, `drop database if exists ${String(datname)} with (force)`);
}

async function preparePglite(): Promise<PreparedPglite> {
  const { openPglite } = await import('../../src/store/database/pglite.ts');
  const [folder, dump] = [join(tmpdir(), 'pglite'), join(tmpdir(), 'pglite.tar')];
  const engine = await openPglite({ dataDir: folder, log: console });
  await engine.migrate();
  // What PostgreSQL copies new databases from is two fifths of the files, and nobody makes one here.
  for (const template of ['1', '4']) rmSync(join(folder, 'pglite/base', template), { recursive: true });
  writeFileSync(dump, Buffer.from(await (await engine.dump()).arrayBuffer()));
  await engine.close();
  return { dump, folder };
}
