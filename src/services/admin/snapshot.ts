import { once } from 'node:events';
import { mkdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { AdminService } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { rewriteErased } from '../../store/database/vacuum.ts';
import type { Log } from '../../telemetry/log.ts';
import { type AdminContext, noteBackup, refusal } from './context.ts';
import { createFolderCopy, sizeOfFolder } from './folder-copy.ts';

/** Makes snapshots in a data folder for callers that pack them; there is one at a time. */
export function adminSnapshots(context: AdminContext, { dataDir, log }: { dataDir: string; log: Log }) {
  const { database, now } = context;
  const folder = snapshotFolder(dataDir);
  let isTaken = false;
  return {
    /** Says how much is copied so far, and at the end how long writes waited. */
    async *takeSnapshot(_request, { signal }: HandlerContext) {
      if (isTaken) throw refusal('Another backup is under way.');
      isTaken = true;
      let bytes = 0;
      const onBytes = (more: number) => {
        bytes += more;
      };
      // What was erased is not to come back out of a backup's files.
      await rewriteErased(database, { log });
      const copying = takeSnapshot({ database, dataDir, folder, now, onBytes });
      try {
        let facts: SnapshotFacts | undefined;
        while (facts === undefined) {
          facts = await Promise.race([copying, sleep(PROGRESS_MS, undefined)]);
          if (facts === undefined) yield { copiedBytes: BigInt(bytes) };
        }
        noteBackup(context);
        log.info({ ...facts, bytes }, 'Copied the database for a backup.');
        yield { madeTime: timestampFromDate(facts.madeAt), waited: durationFromMs(facts.waitedMs) };
        if (!signal.aborted) await once(signal, 'abort');
      } finally {
        // A caller that is gone does not end the copying.
        await copying.catch(() => undefined);
        await rm(folder, { recursive: true, force: true });
        isTaken = false;
      }
    },
  } satisfies Partial<ServiceImpl<typeof AdminService>>;
}

const PROGRESS_MS = 1_000;

/** Where the service of a data folder puts its snapshot. */
export function snapshotFolder(dataDir: string): string {
  return join(dataDir, 'backup.partial');
}

/**
 * Copies the files of the embedded database and of the uploads into `folder`, as they are at one instant: what is
 * acknowledged before is in the copy. Statements wait while what has changed since the first pass is copied once
 * more.
 *
 * The copy is what a process leaves that is killed: anyone who opens it recovers it from its log.
 *
 * @throws ConnectError if the disk has too little space for the copy, or the database is not embedded.
 */
async function takeSnapshot(options: SnapshotOptions): Promise<SnapshotFacts> {
  const { database, dataDir, folder, now, onBytes } = options;
  const { files } = database;
  if (files === undefined) throw refusal('Only an embedded database has files to copy.');
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
    return new Date(now());
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
  throw refusal(
    `A copy of the database takes ${mib(bytes)} MiB, and the disk of ${dataDir} has ${mib(free)} MiB left. ` +
      'Make room, or stop the service: then nothing is copied beside the archive.',
  );
}

type SnapshotFacts = {
  /** What was acknowledged before this time is in the copy. */
  madeAt: Date;
  /** How long statements waited, in milliseconds. */
  waitedMs: number;
};

type SnapshotOptions = Pick<AdminContext, 'database' | 'now'> & {
  dataDir: string;
  /** Where to copy them: replaced if it is there. */
  folder: string;
  /** Called with the bytes of each file that was copied. */
  onBytes?: ((bytes: number) => void) | undefined;
};
