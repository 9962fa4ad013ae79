import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readConfig } from '../../config.ts';
import type { Admin } from '../../services/admin/admin.ts';
import { openUploadStore } from '../../services/uploads/s3-upload-store.ts';
import { type ExportName, exportNames } from '../../store/projects/project-export.ts';
import { createProgress, RefusedError, type Terminal } from '../terminal.ts';
import { linesOf } from './server-tools.ts';

/**
 * Writes all of a project into an empty folder that its owner alone can read: a file of JSON lines for each kind of
 * thing, and the submitted files by their ids. All of it is read again and counted.
 *
 * @throws RefusedError if the folder is not empty, or something was not written as it is stored.
 */
export async function exportProject(
  admin: Admin,
  { project, folder }: { project: string; folder: string },
  terminal: Terminal,
): Promise<void> {
  const { note, now, env } = terminal;
  await makeFolder(folder);
  const progress = createProgress(note, now);
  const store = openUploadStore(readConfig(env), now);
  await admin.noteExport({ project });
  const facts: string[] = [];
  for (const name of exportNames) {
    const file = join(folder, `${name}.ndjson`);
    const written = await writeRows(file, name);
    if ((await countLines(file)) !== written) throw new RefusedError(`${file} is incomplete.`);
    facts.push(`${written} ${name.replace('_', ' ')}`);
  }
  const files = await writeFiles();
  note(`Exported ${project} to ${folder}: ${facts.join(', ')}, ${files} files.`);
  note('Secrets of webhooks and keys are not in it. Keep it where nobody else can read it.');

  async function writeRows(file: string, name: ExportName): Promise<number> {
    await using handle = await open(file, 'wx', 0o600);
    let count = 0;
    for await (const { lines } of admin.exportRows({ project, table: name })) {
      if (lines.length > 0) await handle.writeFile(`${lines.join('\n')}\n`);
      count += lines.length;
      progress(() => `Exporting ${name}: ${count}`);
    }
    await handle.sync();
    return count;
  }

  async function writeFiles(): Promise<number> {
    await mkdir(join(folder, 'files'), { mode: 0o700 });
    let count = 0;
    for await (const line of linesOf(createReadStream(join(folder, 'uploads.ndjson')))) {
      const { id, sha256 } = uploadLine.parse(JSON.parse(line));
      const content = await store.get(id);
      if (content === undefined) {
        note(`The file of the upload ${id} is not there.`);
        continue;
      }
      await using handle = await open(join(folder, 'files', id), 'wx', 0o600);
      if ((await writeContent(handle, content)) !== sha256) {
        throw new RefusedError(`The file of the upload ${id} is damaged.`);
      }
      count += 1;
      progress(() => `Copying files: ${count}`);
    }
    return count;
  }
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await readdir(folder)).length > 0)
    throw new RefusedError(`${folder} is not empty. Name another folder.`);
}

/** Returns the SHA-256 of what was written, in hex. */
async function writeContent(handle: FileHandle, content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of content) {
    hash.update(piece);
    await handle.writeFile(piece);
  }
  await handle.sync();
  return hash.digest('hex');
}

async function countLines(file: string): Promise<number> {
  let count = 0;
  for await (const line of linesOf(createReadStream(file))) {
    JSON.parse(line);
    count += 1;
  }
  return count;
}

const uploadLine = z.object({ id: z.string(), sha256: z.string() });
