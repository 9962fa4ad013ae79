import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { TarSource } from 'modern-tar/fs';
import manifest from '../../../package.json' with { type: 'json' };
import { type Config, readConfig } from '../../config.ts';
import { sizeOfFolder } from '../../services/admin/folder-copy.ts';
import { requestSnapshot } from '../../services/admin/socket.ts';
import { lockDataFolder } from '../../store/database/data-folder.ts';
import { RefusedError } from '../errors.ts';
import { refuseExisting, writeArchive } from './archive.ts';
import { hasDatabase, noDatabase, refuseOtherUsers } from './open.ts';
import { createProgress, inMib } from './progress.ts';
import type { Terminal } from './terminal.ts';

/**
 * Writes the embedded database, the uploads and the secret key into an archive: of a service that runs as they are
 * at one instant, while writes wait for a moment; else from the data folder, which no service can open meanwhile.
 *
 * @throws RefusedError on a server, with what to run in its place.
 */
export async function backUp(file: string, { env, now, note }: Terminal): Promise<void> {
  const config = readConfig(env);
  if (config.databaseUrl !== undefined) throw new RefusedError(onServer(config, file));
  const { dataDir } = config;
  refuseExisting(file);
  const progress = createProgress(note, now);
  await using running = await requestSnapshot(dataDir, (bytes) =>
    progress(() => `Copying the files of the running service: ${inMib(bytes)}`),
  );
  if (running === undefined && !hasDatabase(dataDir)) throw new RefusedError(noDatabase(dataDir));
  const folder = join(dataDir, 'database');
  if (running === undefined) {
    refuseOtherUsers(folder);
    note(`No service runs on ${dataDir}: packing its files. None can start until that is done.`);
  }
  using _lock = running === undefined ? heldLock(folder) : undefined;
  const database = running === undefined ? join(folder, 'pglite') : join(running.folder, 'database');
  const uploads = join(running === undefined ? dataDir : running.folder, 'uploads');

  const madeAt = running?.madeAt ?? new Date(now()).toISOString();
  const sources = await sourcesOf({ config, database, uploads, madeAt });
  const total = (await sizeOfFolder(database)) + (await sizeOfFolder(uploads));
  const { bytes } = await writeArchive(file, sources, {
    isWanted: (path) => basename(path) !== 'spool',
    onBytes: (done) => progress(() => `Packing: ${inMib(done)} of ${inMib(total)}`),
  });
  const waited = running === undefined ? '' : ` Writes waited for ${(running.waitedMs / 1000).toFixed(2)} s.`;
  note(`Backed up ${inMib(total)} to ${file} (${inMib(bytes)}).${waited}`);
  if (running !== undefined) note(`It holds everything that was acknowledged before ${madeAt}.`);
  for (const line of besideArchive(config)) note(line);
}

async function sourcesOf({ config, database, uploads, madeAt }: Parts): Promise<TarSource[]> {
  const facts = { format: 1, version: manifest.version, madeAt, uploads: config.uploads === undefined };
  const secretKey = join(config.dataDir, 'secret.key');
  const withUploads = config.uploads === undefined && existsSync(uploads);
  return [
    { type: 'content', content: `${JSON.stringify(facts, null, 2)}\n`, target: 'backup.json', mode: 0o600 },
    { type: 'directory', source: database, target: 'database/pglite' },
    ...(withUploads ? [{ type: 'directory' as const, source: uploads, target: 'uploads' }] : []),
    ...(config.secretKey === undefined && (await isFile(secretKey))
      ? [{ type: 'file' as const, source: secretKey, target: 'secret.key' }]
      : []),
  ];
}

function besideArchive({ secretKey, uploads }: Config): string[] {
  return [
    secretKey === undefined
      ? 'The archive holds all answers and the secret key: keep it where nobody else can read it.'
      : 'The archive holds all answers. It does not hold SECRET_KEY, which is needed with it: keep that as well.',
    ...(uploads === undefined
      ? []
      : ['The uploads are in the bucket of UPLOADS_URL and not in the archive.']),
  ];
}

function onServer({ uploads, dataDir }: Config, file: string): string {
  const lines = [
    'The database is on a server, which has its own tool. With DATABASE_URL set as the service has it:',
    `  pg_dump --format=custom --no-owner --file=${file} "$DATABASE_URL"`,
    ...(uploads === undefined
      ? [
          'and after it, since files come before their rows:',
          `  tar -czf ${file}.uploads.tar.gz -C ${dataDir} uploads`,
        ]
      : ['The uploads are in the bucket of UPLOADS_URL.']),
    'Keep SECRET_KEY with them. Nothing was backed up now.',
  ];
  return lines.join('\n');
}

function heldLock(folder: string): Disposable {
  const lock = lockDataFolder(folder, () => {
    throw new Error('The lock on the data folder is gone; another process may use the folder');
  });
  return { [Symbol.dispose]: () => lock.release() };
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

type Parts = { config: Config; database: string; uploads: string; madeAt: string };
