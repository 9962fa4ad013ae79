import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { emptyIfMissing } from '../../domain/errors/system-errors.ts';
import { isId } from '../../domain/ids.ts';

/**
 * Keeps files on disk while they arrive, in a folder that is made when the first one comes, each under the id
 * of its upload, so that memory holds none of them.
 */
export function createSpool(folder: string): Spool {
  return {
    open: (id) => new FileOnDisk(folder, id),
    async removeLeft(before) {
      const names = await readdir(folder).catch(emptyIfMissing);
      for (const id of names.filter((name) => isId('upl', name))) {
        const facts = await stat(join(folder, id)).catch(emptyIfMissing);
        if (Array.isArray(facts) || facts.mtimeMs >= before) continue;
        await rm(join(folder, id), { force: true });
      }
    },
  };
}

class FileOnDisk implements SpooledFile {
  readonly id: string;
  readonly path: string;
  size = 0;
  readonly #folder: string;
  readonly #hash = createHash('sha256');
  readonly #start: Uint8Array[] = [];
  #file: FileHandle | undefined;

  constructor(folder: string, id: string) {
    if (!isId('upl', id)) throw new TypeError('Not the id of an upload');
    this.#folder = folder;
    this.id = id;
    this.path = join(folder, id);
  }

  async write(part: Uint8Array): Promise<void> {
    if (part.length === 0) return;
    if (this.#file === undefined) {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      this.#file = await open(this.path, 'wx', 0o600);
    }
    if (this.size < START_BYTES) this.#start.push(part.slice(0, START_BYTES - this.size));
    this.size += part.length;
    this.#hash.update(part);
    for (let written = 0; written < part.length; ) {
      written += (await this.#file.write(part, written)).bytesWritten;
    }
  }

  get start(): Uint8Array {
    return Buffer.concat(this.#start);
  }

  finish(): string {
    return this.#hash.digest('hex');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#file === undefined) return;
    await this.#file.close();
    await rm(this.path, { force: true });
  }
}

/** What tells a file's type. */
const START_BYTES = 64 * 1024;

export type Spool = {
  /** A new file for the upload with this id. */
  open(id: string): SpooledFile;
  /** Removes what processes have left that died: files last written to before a time, in milliseconds since 1970. */
  removeLeft(before: number): Promise<void>;
};

/** A file that arrives in parts. It is made with its first byte, and removed at the end of its scope. */
export type SpooledFile = AsyncDisposable & {
  readonly id: string;
  readonly path: string;
  /** Bytes so far. */
  readonly size: number;
  /** The first bytes, up to 64 KiB. */
  readonly start: Uint8Array;
  write(part: Uint8Array): Promise<void>;
  /** The digest of the whole file in hex, which ends it: it takes no further part. */
  finish(): string;
};
