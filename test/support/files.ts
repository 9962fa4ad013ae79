import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StoredFile } from '../../src/services/uploads/upload-store.ts';
import { temporaryFolder } from './spawn.ts';

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
