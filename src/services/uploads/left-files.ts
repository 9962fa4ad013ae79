import { HOUR_MS } from '../../domain/durations.ts';
import { isUploadStored } from '../../store/uploads.ts';
import type { ServiceOptions } from '../context.ts';

/**
 * Removes the files that a process has left which died while they arrived, or which could not store their row, from
 * the spool, and from the upload store if they have no row. To be called at start.
 */
export async function removeLeftFiles(options: LeftFilesOptions): Promise<void> {
  const { database, spool, uploads, now, log } = options;
  // The embedded database has one process. Beside others, a file may be on its way to one of them.
  const before = database.engine === 'pglite' ? Number.POSITIVE_INFINITY : now() - OTHERS_MS;
  for (const id of await spool.list(before)) {
    try {
      if (!(await isUploadStored(database, id))) await uploads.remove(id);
      await spool.remove(id);
    } catch (error) {
      log.warn(
        { err: error, upload: id },
        'Could not remove what is left of an upload; the next start tries again.',
      );
    }
  }
}

/** No upload pauses for so long. */
const OTHERS_MS = HOUR_MS;

type LeftFilesOptions = Pick<ServiceOptions, 'database' | 'spool' | 'uploads' | 'now' | 'log'>;
