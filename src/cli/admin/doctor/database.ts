import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../../config.ts';
import { checkDefinition } from '../../../domain/definition/definition.ts';
import { SecretBox } from '../../../domain/secrets/secret-key.ts';
import { findSecretKey, requireKeyOf } from '../../../secret-key.ts';
import { connectAdminSocket } from '../../../services/admin/socket.ts';
import type { Database } from '../../../store/database/database.ts';
import { migrationState } from '../../../store/database/migrate.ts';
import { publishedVersions } from '../../../store/forms/versions.ts';
import { findFact, SECRET_KEY_CHECK } from '../../../store/installation.ts';
import { type Finding, findingsAbout } from '../../terminal.ts';
import { hasDatabase, openAsIs, refuseOtherUsers } from '../open.ts';

const about = findingsAbout('database');
const clock = findingsAbout('clock');
const forms = findingsAbout('forms');

/** Whether the database can be opened, has the tables of this version and this SECRET_KEY, and the same time. */
export async function* checkDatabase(config: Config, now: () => number): AsyncGenerator<Finding> {
  const { databaseUrl, dataDir } = config;
  const folder = join(dataDir, 'database');
  if (databaseUrl !== undefined) {
    await using database = await openAsIs({ databaseUrl });
    yield await checkClock(database, now);
    yield* findingsOf(database, config);
    return;
  }
  const admin = await connectAdminSocket(dataDir);
  if (admin !== undefined) {
    let count = 0;
    for await (const { projects } of admin.listProjects({})) count += projects.length;
    yield about.ok(`embedded, opened by the service that runs (${count} projects)`);
  } else if (hasDatabase(dataDir)) {
    refuseOtherUsers(folder);
    await using database = await openAsIs({ dataDir: folder });
    yield* findingsOf(database, config);
  } else yield about.ok(`none yet: the first start makes one in ${folder}`);
}

async function* findingsOf(database: Database, config: Config): AsyncGenerator<Finding> {
  const { isNew, pending, unknown } = await migrationState(database);
  const [row] = await database.select('show server_version');
  const version = String(row?.server_version).split(' ')[0] ?? '';
  yield Number.parseInt(version, 10) < OLDEST_VERSION
    ? about.fail(`PostgreSQL ${version} is too old: ${OLDEST_VERSION} or newer is needed`)
    : about.ok(`PostgreSQL ${version}${config.databaseUrl === undefined ? ', embedded' : ''}`);
  if (unknown.length > 0) {
    yield about.fail(`its tables are of a newer version (${unknown.join(', ')}): start that one`);
  } else if (pending.length > 0) {
    const what = isNew ? 'no tables yet' : `${pending.length} migrations to run`;
    const how = config.migrate ? 'the next start runs them' : 'run npm run cli -- admin migrate';
    yield config.migrate ? about.ok(`${what}: ${how}`) : about.fail(`${what}: ${how}`);
  } else yield about.ok('its tables are up to date');
  if (!isNew && pending.length === 0) yield* checkDefinitions(database);
  if (!isNew) yield* checkSecretKey(database, config);
}

async function* checkSecretKey(database: Database, config: Config): AsyncGenerator<Finding> {
  const sealed = await findFact(database, SECRET_KEY_CHECK);
  const isGiven = config.secretKey !== undefined || existsSync(join(config.dataDir, 'secret.key'));
  if (sealed === undefined || (!isGiven && config.databaseUrl !== undefined)) return;
  if (!isGiven) {
    yield about.fail('the secret key of its data is missing: restore DATA_DIR/secret.key, or set SECRET_KEY');
    return;
  }
  requireKeyOf(sealed, new SecretBox(findSecretKey(config), config.previousSecretKey));
  yield about.ok('SECRET_KEY is that of its data');
}

async function checkClock(database: Database, now: () => number): Promise<Finding> {
  const begin = now();
  const there = (await database.now()).getTime();
  const offset = Math.abs(there - (begin + now()) / 2) / 1000;
  const text = `differs from the database's by ${offset.toFixed(1)} s`;
  if (offset < CLOCK_OK_S) return clock.ok(text);
  const what = `${text}: let both follow a time server (signatures and links would be judged wrongly)`;
  return offset < CLOCK_BAD_S ? clock.warning(what) : clock.fail(what);
}

/** What `openPostgres` says. */
const OLDEST_VERSION = 14;

const CLOCK_OK_S = 2;

/** Receivers of webhooks commonly refuse signatures that are 300 s old. */
const CLOCK_BAD_S = 60;

/** Names the published versions that could not be published today. They go on as they are. */
export async function* checkDefinitions(database: Database): AsyncGenerator<Finding> {
  let count = 0;
  for await (const { formId, number, definition } of publishedVersions(database)) {
    const checked = checkDefinition(definition, { keyless: false, allowPrivateUrls: true });
    for (const { path, message } of checked.ok ? [] : checked.violations) {
      count += 1;
      if (count > MAX_FINDINGS) return yield forms.warning('… and maybe more');
      yield forms.warning(`${formId}, version ${number}, ${path}: could not be published today. ${message}.`);
    }
  }
}

/** More are too many to read. */
const MAX_FINDINGS = 50;
