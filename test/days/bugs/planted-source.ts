import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Edit } from './bugs.ts';

/** A copy of the service and of the simulated days with a planted bug. Throws if an edit does not fit the source. */
export async function plant(edits: readonly Edit[]): Promise<PlantedSource> {
  const folder = await mkdtemp(join(tmpdir(), 'days-bug-'));
  const dispose = () => rm(folder, { recursive: true, force: true });
  try {
    for (const name of ['src', 'test/days', 'test/support'])
      await cp(join(root, name), join(folder, name), { recursive: true });
    for (const name of ['node_modules', 'gen', 'package.json', 'tsconfig.json', 'docs', 'README.md'])
      await symlink(join(root, name), join(folder, name));
    for (const edit of edits) await apply(folder, edit);
  } catch (error) {
    await dispose();
    throw error;
  }
  return { folder, [Symbol.asyncDispose]: dispose };
}

async function apply(folder: string, { file, find, replace }: Edit): Promise<void> {
  const path = join(folder, file);
  const source = await readFile(path, 'utf8');
  const parts = source.split(find);
  if (parts.length !== 2)
    throw new Error(`${file} has the text of a planted bug ${parts.length - 1} times: ${find}`);
  await writeFile(path, parts.join(replace));
}

const root = join(import.meta.dirname, '../../..');

/** Where the copy is; it goes when it is disposed of. */
type PlantedSource = AsyncDisposable & { folder: string };
