import { copyFile, type FileHandle, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasCode, isLinkRefused } from '../../domain/errors/system-errors.ts';
import { isId } from '../../domain/ids.ts';

/**
 * Keeps the bytes of uploads in a local folder, which is made when the first one comes.
 *
 * A file is whole or not there, also after a power cut. Names are ids, never what a sender said.
 */
export function localUploadStore(folder: string): UploadStore {
  /** Ids begin with the time and end with random characters, by which the subfolders fill evenly. */
  const pathOf = (id: string) => {
    if (!isId('upl', id)) throw new TypeError('Not the id of an upload');
    return join(folder, id.slice(-2), id);
  };
  return {
    async put(id, file) {
      const path = pathOf(id);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await flush(file.path);
      await linkOrCopy(file.path, path);
      await flush(dirname(path));
    },
    async get(id) {
      try {
        return piecesOf(await open(pathOf(id), 'r'));
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return undefined;
        throw error;
      }
    },
    async remove(id) {
      await rm(pathOf(id), { force: true });
    },
  };
}

/** The content of a file, which is closed at the end, or when nobody reads on. */
async function* piecesOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  yield* file.createReadStream({ highWaterMark: PIECE_BYTES });
}

/** Puts what was written on the disk. A new name of a file is there only once its folder is. */
export async function flush(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

/** A second name for the file, which costs nothing; a copy where the file system has no such names. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!isLinkRefused(error)) throw error;
    await copyFile(from, `${to}.part`);
    await flush(`${to}.part`);
    await rename(`${to}.part`, to);
  }
}

/**
 * Where the bytes of uploads lie, under the ids of their rows: a local folder, or another store
 * behind the same three functions.
 */
export type UploadStore = {
  /** Keeps a copy of a file. It is safe once the promise is fulfilled. */
  put(id: string, file: StoredFile): Promise<void>;
  /**
   * The content in pieces of at most `PIECE_BYTES`, to be read once, to its end or not at all further; undefined
   * if there is none.
   */
  get(id: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Does nothing if there is none. */
  remove(id: string): Promise<void>;
};

/** The bytes of a piece of a file: far below the 4 MiB that gRPC clients take by default. */
export const PIECE_BYTES = 256 * 1024;

/** A file on the disk. */
export type StoredFile = {
  path: string;
  /** Bytes. */
  size: number;
  /** Hex. */
  sha256: string;
};
