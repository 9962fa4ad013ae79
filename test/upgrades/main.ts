import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { startMailServer } from '../support/mail-server.ts';
import { runOn, startPostgres } from '../support/postgres.ts';
import { startReceiver } from '../support/receiver.ts';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { addStatements, digestOfTables, KEY, RECEIVER, writeFixture } from './fixture.ts';
import { makeRows } from './rows.ts';

// npm run fixture [FOLDER] makes the fixture of the newest migration with the code of this folder, or of another
// working tree, with its packages.
const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../..'));
const { migrations } = (await import(pathToFileURL(join(folder, 'src/store/migrations/index.ts')).href)) as {
  migrations: { name: string }[];
};
const migration = migrations.at(-1)?.name ?? '';

await using opened = new AsyncDisposableStack();
const place = opened.use(temporaryFolder()).path;
const logs = join(place, 'log');
mkdirSync(logs);
chmodSync(place, 0o755);
chmodSync(logs, 0o777);
const postgres = await startPostgres({
  logging_collector: 'on',
  log_destination: 'jsonlog',
  log_directory: logs,
  log_file_mode: '0644',
  log_statement: 'all',
});
opened.defer(() => postgres.stop());
const SERVING = "select 'It serves now.'";
const select = (sql: string) => runOn(postgres.url, sql);
const statuses: Record<string, number> = { '/ok': 204, '/later': 503, '/gone': 410 };
const receiver = opened.use(
  await startReceiver(({ path }, response) => void response.writeHead(statuses[path] ?? 404).end()),
);
let isRefusing = false;
const mails = opened.use(await startMailServer(() => (isRefusing ? 450 : undefined)));
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const service = opened.use(
  spawnService(
    {
      PORT: String(port),
      GRPC_PORT: String(await freePort()),
      HOST: '127.0.0.1',
      BASE_URL: url,
      DATA_DIR: join(place, 'data'),
      DATABASE_URL: postgres.url,
      SECRET_KEY: 'ab'.repeat(32),
      BOOTSTRAP_API_KEY: KEY,
      SMTP_URL: mails.url,
      WEBHOOK_ALLOW_PRIVATE: 'true',
      WEBHOOK_RETRY_SCHEDULE: '0,60',
    },
    { folder },
  ),
);
await service.started();
await select(SERVING);
const refuseFiles = () => {
  const uploads = join(place, 'data/uploads');
  for (const name of readdirSync(uploads)) {
    renameSync(join(uploads, name), join(place, name));
    writeFileSync(join(uploads, name), 'No folder, so that the store fails.');
  }
};
const known = await makeRows({
  url,
  receiver,
  mails,
  refuseMails: () => (isRefusing = true),
  refuseFiles,
});
const rows = await rowsAtRest();
await service.stop();
writeFixture({
  migration,
  madeAt: new Date().toISOString(),
  digest: await digestOfTables(select),
  known,
  rows: rows.replaceAll(receiver.url, RECEIVER),
});
addStatements(migration, loggedStatements());
const counts = [...rows.matchAll(/^insert into "(\w+)"[\s\S]*?;$/gm)].map(
  ([insert, table]) => `${table} ${insert.split('\n(').length - 1}`,
);
process.stdout.write(`${migration}: ${counts.join(', ')}\n`);

/** The rows of all tables as SQL, once nothing is under way any more. */
async function rowsAtRest(): Promise<string> {
  let before = '';
  return until(async () => {
    await sleep(1_500);
    const found = await everyRow();
    const isAtRest = found === before;
    before = found;
    return isAtRest && found;
  }, 60_000);
}

async function everyRow(): Promise<string> {
  const tables = await select(
    `select relname as name, array(
       select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum
     ) as columns
     from pg_class c where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'migrations'
     order by relname`,
  );
  let inserts = '';
  for (const { name, columns } of tables as { name: string; columns: string[] }[]) {
    const quoted = columns.map((column) => `"${column}"`);
    const values = quoted.map((column) => `quote_nullable(${column})`).join(", ', ', ");
    const found = await select(`select concat('(', ${values}, ')') as row from "${name}" order by 1`);
    if (found.length === 0) continue;
    inserts += `insert into "${name}" (${quoted.join(', ')}) values\n${found.map(({ row }) => row).join(',\n')};\n\n`;
  }
  return inserts;
}

/** Every statement of the service while it served, on one line. */
function loggedStatements(): string[] {
  const files = readdirSync(logs).filter((name) => name.endsWith('.json'));
  const messages = files
    .flatMap((name) => readFileSync(join(logs, name), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { message?: string }).message ?? '');
  const served = messages.slice(messages.findIndex((message) => message.endsWith(SERVING)));
  return (
    served
      .map((message) => /^(?:statement|execute [^:]*): ([\s\S]*)/.exec(message)?.[1] ?? '')
      .map((sql) => sql.trim().replace(/\s*\n\s*/g, ' '))
      .filter((sql) => /^(select|insert|update|delete|with)\b/i.test(sql))
      // Those of this program.
      .filter((sql) => !/\b(pg_class|quote_nullable)\b/.test(sql) && sql !== SERVING)
      .map((sql) => sql.replace(/'(?:[^']|'')*'/g, (value) => (/^'\{.{60}/.test(value) ? "'{}'" : value)))
  );
}
