import { mkdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from '../../store/database/database.ts';
import { AdminError } from './context.ts';
import { createFolderCopy, sizeOfFolder } from './folder-copy.ts';

/**
 * Copies the files of the embedded database and of the uploads into `folder`, as they are at one instant: what is
 * acknowledged before is in the copy. Statements wait while what has changed since the first pass is copied once
 * more.
 *
 * The copy is what a process leaves that is killed: whoever opens it recovers it from its log.
 *
 * @throws AdminError if the disk has too little space for the copy, or the database is not embedded.
 */
export async function takeSnapshot(options: SnapshotOptions): Promise<SnapshotFacts> {
  const { database, dataDir, folder, now, onBytes } = options;
  const { files } = database;
  if (files === undefined) throw new AdminError('Only an embedded database has files to copy.');
  await refuseWithoutSpace(files.folder, dataDir);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  const data = createFolderCopy({ from: files.folder, to: join(folder, 'database'), onBytes });
  const uploads = createFolderCopy({
    from: join(dataDir, 'uploads'),
    to: join(folder, 'uploads'),
    link: true,
    onBytes,
  });
  const isUpload = (path: string) => !path.startsWith('spool');

  const { firstSegment, waitedMs: checkpointMs } = await files.checkpoint();
  await data.update((path) => isNeeded(path, firstSegment));
  await uploads.update(isUpload);
  const begin = performance.now();
  const madeAt = await files.hold(async (lastSegment) => {
    await data.update((path) => isNeeded(path, firstSegment, lastSegment));
    await uploads.update(isUpload);
    return new Date(now()).toISOString();
  });
  return { madeAt, waitedMs: Math.round(checkpointMs + performance.now() - begin) };
}

/** The write-ahead log has files that are used up, and files that are made beforehand. */
function isNeeded(path: string, first: string, last = 'G'): boolean {
  const [, segment] = /^pg_wal[\\/]([0-9A-F]{24})$/.exec(path) ?? [];
  return segment === undefined || (segment >= first && segment <= last);
}

async function refuseWithoutSpace(database: string, dataDir: string): Promise<void> {
  const [bytes, disk] = await Promise.all([sizeOfFolder(database), statfs(dataDir)]);
  const free = disk.bavail * disk.bsize;
  if (bytes < free) return;
  const mib = (count: number) => Math.ceil(count / 1024 ** 2);
  throw new AdminError(
    `A copy of the database takes ${mib(bytes)} MiB, and the disk of ${dataDir} has ${mib(free)} MiB left. ` +
      'Make room, or stop the service: then nothing is copied beside the archive.',
  );
}

export type SnapshotFacts = {
  /** What was acknowledged before this time, in ISO 8601, is in the copy. */
  madeAt: string;
  /** How long statements waited, in milliseconds. */
  waitedMs: number;
};

export type SnapshotOptions = {
  database: Database;
  dataDir: string;
  /** Where to copy them: replaced if it is there. */
  folder: string;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Called with the bytes of each file that was copied. */
  onBytes?: ((bytes: number) => void) | undefined;
};
