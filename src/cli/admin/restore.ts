import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readConfig } from '../../config.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { openDatabase } from '../../store/database/database.ts';
import { RefusedError } from '../errors.ts';
import { archiveNames, readArchive } from './archive.ts';
import { refuseOtherUsers } from './open.ts';
import { createProgress, inMib } from './progress.ts';
import { checkRestored } from './restored.ts';
import type { Terminal } from './terminal.ts';

/**
 * Unpacks a backup of an embedded database into the empty DATA_DIR, reads every row and file of it, and puts it into
 * its place. On a server it checks what `pg_restore` has restored, or says how to run that.
 *
 * @throws RefusedError if the folder is not empty, or the backup damaged; the folder is then as it was.
 */
export async function restore(file: string | undefined, terminal: Terminal): Promise<void> {
  const { env, now, note } = terminal;
  const config = readConfig(env);
  if (config.databaseUrl !== undefined) return checkServer(config.databaseUrl, file, terminal);
  if (file === undefined) throw new RefusedError('Which file? Name the one that admin backup has written.');
  const size = await sizeOf(file);
  const { dataDir } = config;
  await refuseUsedFolder(dataDir);

  const folder = join(dataDir, 'restore.partial');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  refuseOtherUsers(dataDir);
  const progress = createProgress(note, now);
  try {
    const onBytes = (done: number) => progress(() => `Unpacking: ${inMib(done)} of ${inMib(size)}`);
    await readArchive(file, folder, { names: archiveNames, onBytes });
    const facts = await readFacts(file, folder);
    note(`Unpacked ${file}, made at ${facts.madeAt} by the version ${facts.version}. Reading all of it.`);
    await using database = await openedCopy(join(folder, 'database'));
    await checkRestored({ now, note, config: { ...config, dataDir: folder }, database, progress });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  await rm(join(folder, 'backup.json'));
  for (const name of await readdir(folder)) await rename(join(folder, name), join(dataDir, name));
  await rm(folder, { recursive: true, force: true });
  note(`Restored into ${dataDir}. Start the service.`);
}

async function checkServer(
  databaseUrl: string,
  file: string | undefined,
  { env, now, note }: Terminal,
): Promise<void> {
  await using database = await openedServer(databaseUrl);
  const [tables] = await database.select(`select to_regclass('migrations') is not null as there`);
  if (tables?.there !== true) {
    const dump = file ?? 'FILE';
    throw new RefusedError(
      [
        'The database at DATABASE_URL has no tables. With the tool of the server, and the same user as the service:',
        `  pg_restore --no-owner --exit-on-error --dbname="$DATABASE_URL" ${dump}`,
        'Then run this command again: it checks what was restored.',
      ].join('\n'),
    );
  }
  if (file !== undefined) await sizeOf(file);
  const progress = createProgress(note, now);
  await checkRestored({ now, note, config: readConfig(env), database, progress });
  note('All of it can be read. Start the service.');
  if (file !== undefined) note(`That is what the database at DATABASE_URL has: ${file} was not read.`);
}

/** The bytes of a file. */
async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) throw new RefusedError(`There is no file ${file}.`);
  return found.size;
}

async function refuseUsedFolder(dataDir: string): Promise<void> {
  if ((await connectAdminSocket(dataDir)) !== undefined) {
    throw new RefusedError(`A service runs on ${dataDir}. Stop it, or set DATA_DIR to another folder.`);
  }
  const used = archiveNames.filter((name) => existsSync(join(dataDir, name)));
  if (used.length > 0) {
    throw new RefusedError(
      `${dataDir} is not empty: it has ${used.join(', ')}. Move that away, or set DATA_DIR to another folder.`,
    );
  }
}

async function readFacts(file: string, folder: string): Promise<z.output<typeof backupFacts>> {
  const text = await readFile(join(folder, 'backup.json'), 'utf8').catch(() => undefined);
  const facts = text === undefined ? undefined : backupFacts.safeParse(JSON.parse(text)).data;
  if (facts === undefined) throw new RefusedError(`${file} is no backup that this version can read.`);
  return facts;
}

const backupFacts = z.object({ format: z.literal(1), version: z.string(), madeAt: z.string() });

async function openedCopy(dataDir: string) {
  const database = await openDatabase({ dataDir, migrate: 'never', log: console });
  return { ...database, [Symbol.asyncDispose]: () => database.close() };
}

async function openedServer(databaseUrl: string) {
  const database = await openDatabase({ databaseUrl, migrate: 'never', poolSize: 2, log: console });
  return { ...database, [Symbol.asyncDispose]: () => database.close() };
}
