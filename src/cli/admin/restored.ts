import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config.ts';
import { errorMessage } from '../../domain/errors/system-errors.ts';
import { SecretBox } from '../../domain/secrets/secret-key.ts';
import { findSecretKey, requireKeyOf, verifySecretKey } from '../../secret-key.ts';
import { openUploadStore } from '../../services/uploads/s3-upload-store.ts';
import type { UploadStore } from '../../services/uploads/upload-store.ts';
import type { Database } from '../../store/database/database.ts';
import { migrationState, refuseNewerTables } from '../../store/database/migrate.ts';
import { SECRET_KEY_CHECK } from '../../store/installation.ts';
import { listUploads } from '../../store/uploads.ts';
import { inMib, type Progress, RefusedError } from '../terminal.ts';
import { readDump } from './server-tools.ts';

/**
 * Reads everything that was restored: every row, every uploaded file, and whether the secret key fits. Says what
 * there is.
 *
 * @throws RefusedError or StartError if something can't be read, is missing, or belongs to something else.
 */
export async function checkRestored(restored: Restored & { database: Database }): Promise<void> {
  const { config, database, note, progress } = restored;
  const counts = await checkDatabase(restored);
  if (config.secretKey !== undefined || existsSync(join(config.dataDir, 'secret.key'))) {
    await verifySecretKey(database, secretsOf(config));
  } else note(WITHOUT_KEY);
  const files = await checkFiles(restored, uploadsIn(database));
  sayWhatThereIs(restored, counts, files);

  const { pending } = await migrationState(database);
  if (pending.length > 0 && config.migrate)
    note('The start of the service will bring the tables up to date.');

  async function checkDatabase({ database: db }: { database: Database }): Promise<Counts> {
    refuseNewerTables(await migrationState(db));
    return readEveryRow(db, (table, bytes) =>
      progress(() => `Reading the table ${table}: ${inMib(bytes)}`),
    ).catch((error: unknown) => {
      throw new RefusedError(`The database is damaged: ${errorMessage(error)}.`, { cause: error });
    });
  }
}

/**
 * Does the same with the dump of a server's database, and the files beside it, before anything is restored.
 *
 * @throws the same.
 */
export async function checkDump(
  restored: Restored & { dump: string; env: NodeJS.ProcessEnv },
): Promise<void> {
  const { config, dump, env, note } = restored;
  const uploads: KnownFile[] = [];
  let sealed: string | undefined;
  const wanted = ['uploads', 'installation'];
  const counts = await readDump({ file: dump, env, wanted }, (table, row) => {
    const [id, sha256] = [row.get('id'), row.get('sha256')];
    if (table === 'uploads' && id !== undefined && sha256 !== undefined) uploads.push({ id, sha256 });
    if (row.get('name') === SECRET_KEY_CHECK) sealed = row.get('value');
  });
  if (config.secretKey === undefined) note(WITHOUT_KEY);
  else if (sealed !== undefined) requireKeyOf(sealed, secretsOf(config));
  sayWhatThereIs(restored, counts, await checkFiles(restored, uploads));
}

const WITHOUT_KEY =
  'Encrypted values were not checked, because SECRET_KEY is not set. The service needs the SECRET_KEY that it had.';

function secretsOf(config: Config): SecretBox {
  return new SecretBox(findSecretKey(config), config.previousSecretKey);
}

async function* uploadsIn(database: Database): AsyncGenerator<KnownFile> {
  for (let after = ''; ; ) {
    const page = await listUploads(database, { after, limit: 100 });
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

async function checkFiles(
  { config, now, note, progress, mayLackFiles }: Restored,
  files: AsyncIterable<KnownFile> | Iterable<KnownFile>,
): Promise<{ found: number; missing: number }> {
  const store = openUploadStore(config, now);
  let found = 0;
  let missing = 0;
  for await (const { id, sha256 } of files) {
    const digest = await digestOf(store, id);
    if (digest === undefined) {
      missing += 1;
      if (missing <= MOST_NAMED) note(`The file of the upload ${id} is missing.`);
    } else if (digest === sha256) found += 1;
    else throw new RefusedError(`The file of the upload ${id} is damaged.`);
    progress(() => `Reading files: ${found + missing}`);
  }
  if (missing > 0 && !mayLackFiles) {
    throw new RefusedError(
      `${missing} of ${found + missing} files are missing. If they can't be had, repeat the command with --allow-missing-files.`,
    );
  }
  return { found, missing };
}

async function digestOf(store: UploadStore, id: string): Promise<string | undefined> {
  const content = await store.get(id);
  if (content === undefined) return undefined;
  const hash = createHash('sha256');
  for await (const piece of content) hash.update(piece);
  return hash.digest('hex');
}

function sayWhatThereIs({ note }: Restored, counts: Counts, files: { found: number; missing: number }): void {
  const rows = ['projects', 'forms', 'submissions', 'api_keys'].map(
    (table) => `${counts.get(table) ?? 0} ${table.replace('_', ' ')}`,
  );
  note(`Read ${rows.join(', ')} and ${files.found} files; ${files.missing} files are missing.`);
}

/** Enough to find out which they are. */
const MOST_NAMED = 20;

type Counts = ReadonlyMap<string, number>;

/** A file as its row has it. */
type KnownFile = { id: string; sha256: string };

type Restored = {
  /** `dataDir` is the folder that has the files, and the secret key if there is one. */
  config: Config;
  progress: Progress;
  note: (line: string) => void;
  now: () => number;
  /** Whether missing files are counted, and not refused. */
  mayLackFiles: boolean;
};

/**
 * Reads every row of every table, so that what a damaged disk or archive has changed is found: the embedded
 * database has checksums, those of servers may. Returns the number of rows by table.
 *
 * Reads in steps of some megabytes; `onStep` is called after each with the table and its bytes read so far.
 */
async function readEveryRow(
  database: Pick<Database, 'select'>,
  onStep: (table: string, bytes: number) => void,
): Promise<Map<string, number>> {
  const tables = await database.select(
    `select tablename as name, ceil(pg_relation_size(format('%I.%I', schemaname, tablename)::regclass) / 8192.0) as pages
     from pg_tables where schemaname = current_schema() order by tablename`,
  );
  const counts = new Map<string, number>();
  for (const { name, pages } of tables) {
    const table = String(name);
    counts.set(table, 0);
    for (let page = 0; page < Number(pages); page += STEP_PAGES) {
      // Writing a row as text reads its long values, too.
      const [row] = await database.select(
        `select count(*) as count, sum(length(t::text)) from "${table}" t
         where ctid >= '(${page},0)'::tid and ctid < '(${page + STEP_PAGES},0)'::tid`,
      );
      counts.set(table, (counts.get(table) ?? 0) + Number(row?.count));
      onStep(table, Math.min(page + STEP_PAGES, Number(pages)) * PAGE_BYTES);
    }
  }
  return counts;
}

const PAGE_BYTES = 8192;
const STEP_PAGES = 1024;
