import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Upload } from '../../gen/headlessforms/v1/uploads_pb.js';
import type { StoredFile } from '../../src/services/uploads/upload-store.ts';
import { temporaryFolder } from './spawn.ts';

/** The whole of what comes in pieces. */
export async function contentOf(pieces: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces ?? []) all.push(piece);
  return Buffer.concat(all);
}

/** A file as the RPCs answer with it, put together, and the sizes of its pieces. */
export async function fileOf(messages: AsyncIterable<FilePiece>) {
  const answer: FilePiece[] = [];
  for await (const message of messages) answer.push(message);
  return {
    upload: answer[0]?.upload,
    content: Buffer.concat(answer.map(({ content }) => content)),
    sizes: answer.map(({ content }) => content.length),
  };
}

/** Files on the disk until the end of the scope. */
export function temporaryFiles() {
  const folder = temporaryFolder();
  let made = 0;
  return {
    of(content: string | Buffer): StoredFile {
      made += 1;
      const path = join(folder.path, String(made));
      writeFileSync(path, content);
      const sha256 = createHash('sha256').update(content).digest('hex');
      return { path, size: Buffer.byteLength(content), sha256 };
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

type FilePiece = { upload?: Upload | undefined; content: Uint8Array };
