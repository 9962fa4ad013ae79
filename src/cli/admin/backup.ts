import { existsSync } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, readConfig } from '../../config.ts';
import { systemUser } from '../../services/admin/admin.ts';
import { noteBackup } from '../../services/admin/context.ts';
import { createFolderCopy, sizeOfFolder } from '../../services/admin/folder-copy.ts';
import { snapshotFolder } from '../../services/admin/snapshot.ts';
import { requestSnapshot } from '../../services/admin/socket.ts';
import { AuditWriter } from '../../store/audit/audit-writer.ts';
import { lockDataFolder } from '../../store/database/data-folder.ts';
import { migrationState, refuseNewerTables } from '../../store/database/migrate.ts';
import { holdRemovals } from '../../store/removal/removals.ts';
import { createProgress, inMib, RefusedError, type Terminal } from '../terminal.ts';
import { noteArchive, refuseExisting, writeArchive } from './archive.ts';
import { hasDatabase, noDatabase, openAdmin, openAsIs, refuseOtherUsers } from './open.ts';
import { dumpServer, serverAt } from './server-tools.ts';

/**
 * Writes the database, the uploads and, unless `isWithoutSecrets`, the secret key into an archive: of a service that
 * runs on the embedded database as they are at one instant, while writes wait for a moment; of one that is stopped
 * from the data folder, which no service can open meanwhile; of a server as `backUpServer` does.
 *
 * @throws RefusedError if that can't be done, with the reason.
 */
export async function backUp(
  file: string,
  { isWithoutSecrets }: { isWithoutSecrets: boolean },
  terminal: Terminal,
): Promise<void> {
  const { env, now, note } = terminal;
  const config = readConfig(env);
  const { databaseUrl, dataDir } = config;
  if (databaseUrl !== undefined) return backUpServer(file, { config, databaseUrl }, terminal);
  refuseExisting(file);
  const progress = createProgress(note, now);
  using running = await requestSnapshot(dataDir, (bytes) =>
    progress(() => `Copying the files of the running service: ${inMib(bytes)}`),
  );
  if (running === undefined && !hasDatabase(dataDir)) throw new RefusedError(noDatabase(dataDir));
  const folder = join(dataDir, 'database');
  if (running === undefined) {
    refuseOtherUsers(folder);
    note(`No service runs on ${dataDir}: packing its files. None can start until that is done.`);
    // What was erased is not to come back out of a backup's files.
    await using opened = await openAdmin(terminal);
    await opened.admin.vacuum({ full: true, ifErased: true });
  }
  using _lock = running === undefined ? lockDataFolder(folder) : undefined;
  const database = running === undefined ? join(folder, 'pglite') : join(running.folder, 'database');
  const uploads = join(running?.folder ?? dataDir, 'uploads');
  const contents = {
    madeAt: (running?.madeAt ?? new Date(now())).toISOString(),
    database: { type: 'directory' as const, source: database, target: 'database/pglite' },
    uploads: config.uploads === undefined ? uploads : undefined,
    secretKey: isWithoutSecrets ? undefined : keyFileOf(config),
  };
  const bytes = (await sizeOfFolder(database)) + (await sizeOfFolder(uploads));
  await writeArchive(file, contents, (done) => progress(() => `Packing: ${inMib(done)} of ${inMib(bytes)}`));
  await noteArchive(
    file,
    contents,
    { bytes, isOfRunning: running !== undefined, waitedMs: running?.waitedMs },
    note,
  );
}

/** The file that has the key, if settings have none. */
function keyFileOf({ secretKey, dataDir }: Config): string | undefined {
  const file = join(dataDir, 'secret.key');
  return secretKey === undefined && existsSync(file) ? file : undefined;
}

/**
 * Writes the database of a server, as it is at one instant, and the uploads into an archive. Nobody waits for it; no
 * process removes files meanwhile, so that those which the dump names are there.
 *
 * @throws RefusedError if this machine can't dump that server.
 */
async function backUpServer(
  file: string,
  { config, databaseUrl }: { config: Config; databaseUrl: string },
  { env, now, note }: Terminal,
): Promise<void> {
  refuseExisting(file);
  await using database = await openAsIs({ databaseUrl });
  const folder = snapshotFolder(config.dataDir);
  const dump = `${file}.dump.partial`;
  let isBegun = false;
  try {
    refuseNewerTables(await migrationState(database));
    const [row] = await database.select('show server_version_num');
    const version = Math.floor(Number(row?.server_version_num) / 10_000);
    const held = await holdRemovals(database, async () => {
      if (isBegun) throw new RefusedError('The connection to the database was lost. Run the command again.');
      isBegun = true;
      const progress = createProgress(note, now);
      const madeAt = new Date(now()).toISOString();
      await dumpServer(serverAt(databaseUrl, env), { version, file: dump }, (bytes) =>
        progress(() => `Dumping the database: ${inMib(bytes)}`),
      );
      await copyUploads(config, folder, (bytes) => progress(() => `Copying files: ${inMib(bytes)}`));
      const contents = {
        madeAt,
        database: { type: 'file' as const, source: dump, target: 'database.dump' },
        uploads: config.uploads === undefined ? join(folder, 'uploads') : undefined,
      };
      const bytes = (await stat(dump)).size + (await sizeOfFolder(folder));
      await writeArchive(file, contents, (done) =>
        progress(() => `Packing: ${inMib(done)} of ${inMib(bytes)}`),
      );
      return { contents, bytes };
    });
    if (held === undefined) {
      throw new RefusedError('Another backup is under way.');
    }
    const auditWriter = new AuditWriter({ database, now, log: console });
    noteBackup({ auditWriter, user: systemUser(), now });
    await auditWriter.close();
    await noteArchive(file, held.contents, { bytes: held.bytes, isOfRunning: true }, note);
  } catch (error) {
    // Without the lock, files may have gone that it should hold.
    if (isBegun) await rm(file, { force: true });
    throw error;
  } finally {
    if (isBegun) {
      await rm(dump, { force: true });
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** A second name for each file, where the file system has such names. */
async function copyUploads(
  { uploads, dataDir }: Config,
  folder: string,
  onCopied: (bytes: number) => void,
): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  if (uploads !== undefined) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  let copied = 0;
  const onBytes = (bytes: number) => {
    copied += bytes;
    onCopied(copied);
  };
  const copy = createFolderCopy({
    from: join(dataDir, 'uploads'),
    to: join(folder, 'uploads'),
    link: true,
    onBytes,
  });
  await copy.update((path) => !path.startsWith('spool'));
}
