import { createHash } from 'node:crypto';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../../src/domain/errors/failure.ts';
import type { Spool, SpooledFile } from '../../../src/services/uploads/spool.ts';
import type { UploadStore } from '../../../src/services/uploads/upload-store.ts';
import type { PeerOptions } from './receivers.ts';
import type { FileObserved } from './types.ts';

/** The store of uploads, and the folder on the disk where files lie while they arrive. Both outlive a process. */
export class Uploads {
  readonly files = new Map<string, Uint8Array>();
  readonly store: UploadStore;
  readonly spool: Spool;
  readonly #spooled = new Map<string, FileInMemory>();
  readonly #options: UploadsOptions;

  constructor(options: UploadsOptions) {
    this.#options = options;
    this.store = {
      put: (id, file) =>
        this.#answer('put', id, () => {
          const spooled = this.#spooled.get(file.path);
          if (spooled === undefined) throw new Error(`There is no file ${file.path}`);
          this.files.set(id, spooled.bytes());
        }),
      get: (id) =>
        this.#answer('get', id, () => {
          const bytes = this.files.get(id);
          return bytes === undefined ? undefined : piecesOf(bytes);
        }),
      remove: (id) => this.#answer('remove', id, () => void this.files.delete(id)),
    };
    this.spool = {
      open: (id) => {
        const file = new FileInMemory(id, options.now(), () => this.#spooled.delete(id));
        this.#spooled.set(id, file);
        return file;
      },
      removeLeft: async (before) => {
        for (const { id, writtenAt } of this.#spooled.values())
          if (writtenAt < before) this.#spooled.delete(id);
      },
    };
  }

  async #answer<T>(method: FileObserved['method'], id: string, work: () => T): Promise<T> {
    const { faults, pause, now, onFile } = this.#options;
    await pause(1, 80);
    const fault = faults.of(['store-away', 'store-lost']);
    const found = fault === 'store-away' ? undefined : work();
    const missing = method === 'get' && found === undefined;
    const answered =
      fault === 'store-away' ? 'failed' : fault === 'store-lost' ? 'lost' : missing ? 'missing' : 'done';
    onFile({ kind: 'file', at: now(), method, id, answered });
    await pause(1, 80);
    if (fault !== undefined) {
      throw failed(Reason.UNAVAILABLE, 'The file storage is unreachable; try again soon', {
        retryAfter: 5,
      });
    }
    return found as T;
  }
}

class FileInMemory implements SpooledFile {
  readonly id: string;
  readonly path: string;
  readonly writtenAt: number;
  size = 0;
  readonly #parts: Uint8Array[] = [];
  readonly #remove: () => void;

  constructor(id: string, now: number, remove: () => void) {
    this.id = id;
    this.path = id;
    this.writtenAt = now;
    this.#remove = remove;
  }

  get start(): Uint8Array {
    return this.bytes().subarray(0, 64 * 1024);
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#parts);
  }

  async write(part: Uint8Array): Promise<void> {
    this.#parts.push(part.slice());
    this.size += part.length;
  }

  finish(): string {
    return createHash('sha256').update(this.bytes()).digest('hex');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#remove();
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

type UploadsOptions = PeerOptions & { onFile: (observed: FileObserved) => void };
