import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
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
    async put(id, content) {
      const path = pathOf(id);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeDurably(`${path}.part`, content);
      await rename(`${path}.part`, path);
      await flushFolder(dirname(path));
    },
    async get(id) {
      try {
        return await readFile(pathOf(id));
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    async remove(id) {
      await rm(pathOf(id), { force: true });
      await rm(`${pathOf(id)}.part`, { force: true });
    },
  };
}

async function writeDurably(path: string, content: Uint8Array): Promise<void> {
  await using file = await open(path, 'w', 0o600);
  await file.writeFile(content);
  await file.sync();
}

/** A rename is on the disk only once its folder is. */
async function flushFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/**
 * Where the bytes of uploads lie, under the ids of their rows: a local folder, or another store
 * behind the same three functions. Contents are at most 10 MiB, so they are passed as a whole.
 */
export type UploadStore = {
  /** Keeps a file. It is safe once the promise is fulfilled. */
  put(id: string, content: Uint8Array): Promise<void>;
  /** Undefined if there is none. */
  get(id: string): Promise<Uint8Array | undefined>;
  /** Does nothing if there is none. */
  remove(id: string): Promise<void>;
};
