import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, readConfig } from '../../config.ts';
import { sizeOfFolder } from '../../services/admin/folder-copy.ts';
import { requestSnapshot } from '../../services/admin/socket.ts';
import { lockDataFolder } from '../../store/database/data-folder.ts';
import { createProgress, inMib, RefusedError, type Terminal } from '../terminal.ts';
import { noteArchive, refuseExisting, writeArchive } from './archive.ts';
import { hasDatabase, noDatabase, openAdmin, refuseOtherUsers } from './open.ts';
import { backUpServer } from './server-backup.ts';

/**
 * Writes the database, the uploads and, unless `isWithoutSecrets`, the secret key into an archive: of a service that runs on the embedded database
 * as they are at one instant, while writes wait for a moment; of one that is stopped from the data folder, which no
 * service can open meanwhile; of a server as `backUpServer` does.
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
  using _lock = running === undefined ? heldLock(folder) : undefined;
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

function heldLock(folder: string): Disposable {
  const lock = lockDataFolder(folder, () => {
    throw new Error('The lock on the data folder is gone; another process may use the folder');
  });
  return { [Symbol.dispose]: () => lock.release() };
}

/** The file that has the key, if settings have none. */
function keyFileOf({ secretKey, dataDir }: Config): string | undefined {
  const file = join(dataDir, 'secret.key');
  return secretKey === undefined && existsSync(file) ? file : undefined;
}
