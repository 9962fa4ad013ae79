import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, readConfig } from '../../config.ts';
import { finishRestore, moveRestored, unpackingFolder } from '../../services/admin/folder-copy.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { makeFolder } from '../../store/database/data-folder.ts';
import type { Database } from '../../store/database/database.ts';
import { createProgress, inMib, RefusedError, type Terminal } from '../terminal.ts';
import { archiveNames, readArchive, readFacts } from './archive.ts';
import { openAsIs, refuseOtherUsers } from './open.ts';
import { checkDump, checkRestored } from './restored.ts';
import { restoreDump, serverAt } from './server-tools.ts';

/**
 * Unpacks a backup into the empty DATA_DIR, and into the empty database of a server if it is of one; reads every row
 * and file of it before anything is put into its place. Without a file, it checks what a server and DATA_DIR have.
 *
 * @throws RefusedError if there is something already, or the backup is damaged or lacks files; all is then as it was.
 */
export async function restore(
  file: string | undefined,
  { mayLackFiles }: RestoreOptions,
  terminal: Terminal,
): Promise<void> {
  const config = readConfig(terminal.env);
  const { databaseUrl, dataDir } = config;
  if (file === undefined) return checkServer(config, mayLackFiles, terminal);
  await sizeOf(file);
  finishRestore(dataDir);
  await refuseUsedFolder(dataDir);
  if (databaseUrl !== undefined) await refuseUsedServer(databaseUrl);

  const folder = unpackingFolder(dataDir);
  try {
    makeFolder(folder);
    refuseOtherUsers(dataDir);
    const { isOfServer } = await unpackAndCheck({ file, folder, config, mayLackFiles }, terminal);
    if (isOfServer !== (databaseUrl !== undefined)) throw new RefusedError(otherEngine(isOfServer));
    if (databaseUrl !== undefined) {
      const dump = join(folder, 'database.dump');
      terminal.note('Restoring the database.');
      await restoreDump(serverAt(databaseUrl, terminal.env), dump);
      await rm(dump);
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  await rm(join(folder, 'backup.json'));
  moveRestored(dataDir);
  terminal.note(
    `Restored into ${dataDir}${databaseUrl === undefined ? '' : ' and DATABASE_URL'}. Start the service.`,
  );
}

/**
 * Unpacks a backup beside itself, reads every row and file of it, and removes what it has unpacked. It needs no
 * database.
 *
 * @throws RefusedError if the backup is damaged or lacks files.
 */
export async function checkArchive(
  file: string,
  { mayLackFiles }: RestoreOptions,
  terminal: Terminal,
): Promise<void> {
  const folder = `${file}.check.partial`;
  try {
    const config = readConfig(terminal.env);
    await unpackAndCheck({ file, folder, config, mayLackFiles }, terminal);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  terminal.note(`Read ${file} to its end without errors.`);
}

async function unpackAndCheck(
  { file, folder, config, mayLackFiles }: Unpacking,
  { env, now, note }: Terminal,
): Promise<{ isOfServer: boolean }> {
  const size = await sizeOf(file);
  await rm(folder, { recursive: true, force: true });
  makeFolder(folder);
  const progress = createProgress(note, now);
  const onBytes = (done: number) => progress(() => `Unpacking: ${inMib(done)} of ${inMib(size)}`);
  await readArchive(file, folder, onBytes);
  const facts = await readFacts(file, folder);
  note(`Unpacked ${file}, made at ${facts.madeAt} by the version ${facts.version}. Reading all of it.`);
  const restored = { now, note, progress, mayLackFiles, config: { ...config, dataDir: folder } };
  const dump = join(folder, 'database.dump');
  if (existsSync(dump)) {
    await checkDump({ ...restored, dump, env });
    return { isOfServer: true };
  }
  await using database = await openAsIs({ dataDir: join(folder, 'database') });
  await checkRestored({ ...restored, database });
  return { isOfServer: false };
}

function otherEngine(isOfServer: boolean): string {
  return isOfServer
    ? 'This is the backup of a database on a server: set DATABASE_URL to an empty one.'
    : 'This is the backup of an embedded database: run the command without DATABASE_URL.';
}

async function refuseUsedServer(databaseUrl: string): Promise<void> {
  await using database = await openAsIs({ databaseUrl });
  if (!(await hasTables(database))) return;
  throw new RefusedError(
    'The database at DATABASE_URL is not empty. Set DATABASE_URL to an empty one, or name no file to check what is there.',
  );
}

async function checkServer(config: Config, mayLackFiles: boolean, { now, note }: Terminal): Promise<void> {
  const { databaseUrl } = config;
  if (databaseUrl === undefined) {
    throw new RefusedError('Which file? Name one that admin backup wrote.');
  }
  await using database = await openAsIs({ databaseUrl });
  if (!(await hasTables(database))) {
    throw new RefusedError(
      'The database at DATABASE_URL has no tables. To restore a backup, name the file that admin backup wrote.',
    );
  }
  await checkRestored({ now, note, config, database, progress: createProgress(note, now), mayLackFiles });
  note('Everything can be read. Start the service.');
}

async function hasTables(database: Database): Promise<boolean> {
  const [tables] = await database.select(`select to_regclass('migrations') is not null as there`);
  return tables?.there === true;
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

export type RestoreOptions = {
  /** Whether a backup that lacks files is taken. */
  mayLackFiles: boolean;
};

type Unpacking = RestoreOptions & { file: string; folder: string; config: Config };
