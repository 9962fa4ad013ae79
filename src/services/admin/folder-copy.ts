import { constants, existsSync, readdirSync, renameSync, rmdirSync } from 'node:fs';
import { copyFile, link, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { emptyIfMissing, hasCode, isLinkRefused, StartError } from '../../domain/errors/system-errors.ts';

/**
 * Makes what copies a folder again and again: each `update` copies what was written to since the one before, and
 * removes what is gone. The first takes long beside those that follow.
 *
 * With `link`, files never change, and the copy is a second name for the same file where the file system has such
 * names. A folder that is not there counts as an empty one.
 */
export function createFolderCopy({
  from,
  to,
  link: isLinked = false,
  onBytes,
}: FolderCopyOptions): FolderCopy {
  let copied = new Map<string, FileState>();
  return {
    async update(isWanted = () => true) {
      const found = new Map<string, FileState>();
      const folders = [''];
      for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
        await mkdir(join(to, folder), { recursive: true, mode: 0o700 });
        const entries = await readdir(join(from, folder), { withFileTypes: true }).catch(emptyIfMissing);
        await inParallel(entries, async (entry) => {
          const path = join(folder, entry.name);
          if (entry.isDirectory()) folders.push(path);
          else if (entry.isFile() && isWanted(path)) {
            const state = await copyIfChanged(path);
            if (state !== undefined) found.set(path, state);
          }
        });
      }
      for (const path of copied.keys()) if (!found.has(path)) await rm(join(to, path), { force: true });
      copied = found;
    },
  };

  /** Undefined if the file is removed meanwhile. */
  async function copyIfChanged(path: string): Promise<FileState | undefined> {
    try {
      const { size, mtimeNs } = await lstat(join(from, path), { bigint: true });
      // A second write within one tick of the file system's clock does not change the time.
      const isSettled = BigInt(Date.now()) * NS_PER_MS - mtimeNs > SETTLED_NS;
      const before = copied.get(path);
      const isSame = before?.isSettled === true && before.size === size && before.mtimeNs === mtimeNs;
      if (!isSame && !(isLinked && before !== undefined)) await copy(join(from, path), join(to, path));
      if (!isSame) onBytes?.(Number(size));
      return { size, mtimeNs, isSettled };
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  async function copy(source: string, target: string): Promise<void> {
    if (isLinked) {
      try {
        return await link(source, target);
      } catch (error) {
        if (!isLinkRefused(error)) throw error;
      }
    }
    await copyFile(source, target, constants.COPYFILE_FICLONE);
  }
}

/** What the files in a folder take, in bytes; 0 if it is not there. */
export async function sizeOfFolder(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(emptyIfMissing);
  let bytes = 0;
  await inParallel(entries, async (entry) => {
    const path = join(folder, entry.name);
    const size = entry.isDirectory()
      ? await sizeOfFolder(path)
      : (await lstat(path).catch(() => ({ size: 0 }))).size;
    bytes += size;
  });
  return bytes;
}

async function inParallel<T>(items: T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}

/** As many as Node has threads for files. */
const PARALLEL = 4;

const NS_PER_MS = 1_000_000n;

/** Far more than a tick of any file system: FAT has 2 s. */
const SETTLED_NS = 3_000_000_000n;

type FileState = { size: bigint; mtimeNs: bigint; isSettled: boolean };

type FolderCopy = {
  /** Copies what `isWanted`, by its path in the folder. */
  update(isWanted?: (path: string) => boolean): Promise<void>;
};

type FolderCopyOptions = {
  from: string;
  to: string;
  link?: boolean;
  /** Called with the bytes of each file that was copied. */
  onBytes?: ((bytes: number) => void) | undefined;
};

/** Where a restore unpacks a backup and checks it. */
export function unpackingFolder(dataDir: string): string {
  return join(dataDir, 'restore.partial');
}

/**
 * Moves what was unpacked and checked into its place. A restore that is killed meanwhile is finished by
 * `finishRestore`: the name of the folder says that all of it was checked.
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
