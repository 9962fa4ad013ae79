import { existsSync, readdirSync, renameSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode, StartError } from '../../domain/errors/system-errors.ts';

/** Where a restore unpacks a backup and checks it. */
export function unpackingFolder(dataDir: string): string {
  return join(dataDir, 'restore.partial');
}

/**
 * Moves what was unpacked and checked into its place. A restore that is killed meanwhile is finished by `finishRestore`:
 * the name of the folder says that all of it was checked.
 */
export function moveRestored(dataDir: string): void {
  renameSync(unpackingFolder(dataDir), checkedFolder(dataDir));
  finishRestore(dataDir);
}

/** Finishes a restore that was killed while it moved what it had checked, if there is one. */
export function finishRestore(dataDir: string): void {
  const folder = checkedFolder(dataDir);
  if (!existsSync(folder)) return;
  try {
    for (const name of readdirSync(folder)) renameSync(join(folder, name), join(dataDir, name));
    rmdirSync(folder);
  } catch (error) {
    // Another worker of the same start has done it.
    if (!hasCode(error, 'ENOENT')) throw error;
    finishRestore(dataDir);
  }
}

/**
 * Throws a `StartError` if a restore into the folder has neither finished nor failed: who opened a database there would
 * begin with an empty one.
 */
export function refuseWhileRestoring(dataDir: string): void {
  const folder = unpackingFolder(dataDir);
  if (!existsSync(folder)) return;
  throw new StartError(
    `DATA_DIR: a restore into ${dataDir} is running, or was interrupted. If none is running, repeat it, or remove ${folder}.`,
  );
}

function checkedFolder(dataDir: string): string {
  return join(dataDir, 'restore.checked');
}
