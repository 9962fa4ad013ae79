import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { TarSource } from 'modern-tar/fs';
import { type Config, readConfig } from '../../config.ts';
import { sizeOfFolder } from '../../services/admin/folder-copy.ts';
import { requestSnapshot } from '../../services/admin/socket.ts';
import { lockDataFolder } from '../../store/database/data-folder.ts';
import { createProgress, inMib, RefusedError, type Terminal } from '../terminal.ts';
import { besideArchive, factsOf, refuseExisting, writeArchive } from './archive.ts';
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
  const uploads = join(running === undefined ? dataDir : running.folder, 'uploads');

  const madeAt = (running?.madeAt ?? new Date(now())).toISOString();
  const secretKey = isWithoutSecrets ? undefined : keyFileOf(config);
  const sources = sourcesOf({ config, database, uploads, madeAt, secretKey });
  const total = (await sizeOfFolder(database)) + (await sizeOfFolder(uploads));
  const { bytes } = await writeArchive(file, sources, {
    isWanted: (path) => basename(path) !== 'spool',
    onBytes: (done) => progress(() => `Packing: ${inMib(done)} of ${inMib(total)}`),
  });
  const waited = running === undefined ? '' : ` Writes waited for ${(running.waitedMs / 1000).toFixed(2)} s.`;
  note(`Backed up ${inMib(total)} to ${file} (${inMib(bytes)}).${waited}`);
  if (running !== undefined) note(`It holds everything that was acknowledged before ${madeAt}.`);
  for (const line of besideArchive(config, secretKey !== undefined)) note(line);
}

function sourcesOf({ config, database, uploads, madeAt, secretKey }: Parts): TarSource[] {
  const withUploads = config.uploads === undefined && existsSync(uploads);
  return [
    factsOf({ config, madeAt }),
    { type: 'directory', source: database, target: 'database/pglite' },
    ...(withUploads ? [{ type: 'directory' as const, source: uploads, target: 'uploads' }] : []),
    ...(secretKey === undefined ? [] : [{ type: 'file' as const, source: secretKey, target: 'secret.key' }]),
  ];
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

type Parts = {
  config: Config;
  database: string;
  uploads: string;
  madeAt: string;
  /** Its file; undefined: it is not to be in the archive. */
  secretKey: string | undefined;
};
